package gitopsrepo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"tazlab.net/castle/ci/base/git"
	"tazlab.net/castle/ci/base/redact"
)

// Remote is where a repository is pushed to.
type Remote struct {
	URL, Branch string
	Credentials git.Credentials
	// AuthorName and AuthorEmail are the commit's author and committer.
	AuthorName, AuthorEmail string
}

// ErrNotEmpty says that a remote has commits already.
var ErrNotEmpty = errors.New("the remote is not empty")

// Check finds what is wrong with the remote before it is called.
func (r Remote) Check() error {
	var mistakes []error
	if strings.HasPrefix(r.URL, "-") || r.URL == "" {
		mistakes = append(mistakes, fmt.Errorf("--push: %q is no address of a repository; write it as https://host/owner/repository.git", r.URL))
	} else if git.HasPassword(r.URL) {
		mistakes = append(mistakes, fmt.Errorf("--push: %s has credentials in it, which would end up in logs; give them as the Git token", redact.URL(r.URL)))
	}
	if err := git.CheckBranch(r.Branch); err != nil {
		mistakes = append(mistakes, fmt.Errorf("--branch: %w", err))
	}
	if r.AuthorName == "" || !strings.Contains(r.AuthorEmail, "@") || strings.ContainsAny(r.AuthorName+r.AuthorEmail, "<>\n") {
		mistakes = append(mistakes, errors.New("--author-name, --author-email: a commit has an author; give a name and an address, such as me@example.org"))
	}
	return errors.Join(mistakes...)
}

// Push makes the files the first commit of an empty remote, and returns its name. A remote that has any branch or tag is
// refused with ErrNotEmpty, and one that gets a commit meanwhile is left as it is.
func (f Files) Push(ctx context.Context, to Remote) (sha string, err error) {
	if err := to.Check(); err != nil {
		return "", err
	}
	dir, err := os.MkdirTemp("", "castle-gitops-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(dir)
	// A local remote is read by a child of git that sees configuration files only. Without this line it refuses a repository of
	// another owner, such as a mounted one.
	global := filepath.Join(dir, "gitconfig")
	if err := os.WriteFile(global, []byte("[safe]\n\tdirectory = *\n"), 0o600); err != nil {
		return "", err
	}
	if !strings.Contains(to.URL, ":") { // git runs in another folder
		if to.URL, err = filepath.Abs(to.URL); err != nil {
			return "", err
		}
	}
	to.Credentials.URL = to.URL
	tree := filepath.Join(dir, "tree")
	if err := f.Write(tree, false); err != nil {
		return "", err
	}
	runner := git.Runner{Dir: tree, Credentials: to.Credentials, Env: []string{
		"GIT_CONFIG_GLOBAL=" + global,
		"GIT_AUTHOR_NAME=" + to.AuthorName, "GIT_AUTHOR_EMAIL=" + to.AuthorEmail,
		"GIT_COMMITTER_NAME=" + to.AuthorName, "GIT_COMMITTER_EMAIL=" + to.AuthorEmail,
	}}
	refs, err := runner.Run(ctx, "ls-remote", "--quiet", "--refs", "--", to.URL)
	if err != nil {
		return "", fmt.Errorf("look at %s: %w", redact.URL(to.URL), err)
	}
	if refs = strings.TrimSpace(refs); refs != "" {
		_, first, _ := strings.Cut(strings.SplitN(refs, "\n", 2)[0], "\t")
		return "", fmt.Errorf("%w: %s has %s; a repository is pushed into an empty one only: make one without a README, or write it into a clone with --out and --over, and look at git diff",
			ErrNotEmpty, redact.URL(to.URL), first)
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--template=", "--initial-branch=" + to.Branch},
		{"add", "--all", "--force"},
		{"commit", "--quiet", "--message=Start the GitOps repository"},
		{"push", "--quiet", "--", to.URL, "HEAD:refs/heads/" + to.Branch},
	} {
		if _, err := runner.Run(ctx, args...); err != nil {
			return "", fmt.Errorf("%s of the GitOps repository: %w", args[0], err)
		}
	}
	sha, err = runner.Run(ctx, "rev-parse", "HEAD")
	return strings.TrimSpace(sha), err
}
