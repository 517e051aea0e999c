package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"

	"tazlab.net/castle/ci/base/git"
)

// NotPushedError says that a commit is on no branch and no tag of the remote, so that nobody else could find what was
// published.
type NotPushedError struct {
	SHA    string
	Remote string // without credentials
}

func (e *NotPushedError) Error() string {
	return fmt.Sprintf("commit %s is on no branch or tag of %s: push it first, or publish a commit that is there", e.SHA, e.Remote)
}

var fullSHA = regexp.MustCompile(`^([0-9a-f]{40}|[0-9a-f]{64})$`)

// Reachable returns a branch or tag of the remote, as refs/heads/main, from which the commit can be reached, or a
// *NotPushedError. Where the commit is not the tip of one, the remote's history is fetched into a temporary folder, commits
// only if the server can filter. Failures of the remote are those of package git.
func Reachable(ctx context.Context, remoteURL, sha string, credentials git.Credentials) (ref string, err error) {
	if !fullSHA.MatchString(sha) {
		return "", fmt.Errorf("%q is no full commit SHA", sha)
	}
	remote := withoutCredentials(remoteURL)
	credentials.URL = remote
	runner := git.Runner{Credentials: credentials, Env: []string{"GIT_NO_LAZY_FETCH=1"}}
	tips, err := runner.Run(ctx, "ls-remote", "--heads", "--tags", "--", remote)
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(tips) {
		object, name, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if object == sha {
			return strings.TrimSuffix(name, "^{}"), nil // the commit an annotated tag is about
		}
	}
	if tips == "" {
		return "", &NotPushedError{SHA: sha, Remote: remote}
	}

	dir, err := os.MkdirTemp("", "castle-history-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	runner.Dir = dir
	format := "sha1"
	if len(sha) == 64 {
		format = "sha256"
	}
	if _, err := runner.Run(ctx, "init", "--quiet", "--bare", "--template=", "--object-format="+format); err != nil {
		return "", err
	}
	if _, err := runner.Run(ctx, "fetch", "--quiet", "--filter=tree:0", "--", remote,
		"+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"); err != nil {
		return "", err
	}
	containing, err := runner.Run(ctx, "for-each-ref", "--count=1", "--format=%(refname)", "--contains="+sha, "refs/heads", "refs/tags")
	var failed *git.Error
	absent := errors.As(err, &failed) && strings.Contains(failed.Stderr, "no such commit")
	switch {
	case absent, err == nil && containing == "": // a server may send more than was asked for
		return "", &NotPushedError{SHA: sha, Remote: remote}
	case err != nil:
		return "", err
	}
	return strings.TrimSpace(containing), nil
}
