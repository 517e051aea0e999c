package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"tazlab.net/castle/ci/base/git"
	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/publish/site/hugopaths"
)

// Commit is what would be published.
type Commit struct {
	SHA       string    `json:"sha"`                 // full, in hexadecimal
	Short     string    `json:"short"`               // 7 characters, more where another object begins alike
	Time      time.Time `json:"time"`                // commit time, in UTC
	Subject   string    `json:"subject"`             // first line of the message
	Branch    string    `json:"branch,omitempty"`    // empty when HEAD is detached
	RemoteURL string    `json:"remoteURL,omitempty"` // of the branch's remote, else origin, without credentials
	Source    string    `json:"source,omitempty"`    // that remote as https://host/path; empty for one on this machine
	TreeSHA   string    `json:"treeSHA"`             // of the published folder
	Shallow   bool      `json:"shallow"`             // the history is cut off
	Detached  bool      `json:"detached"`            // HEAD is a commit, no branch
	GitInfo   bool      `json:"gitInfo"`             // Hugo's enableGitInfo: the build reads the history
	Notes     []string  `json:"notes,omitempty"`     // what a person may want to know, one sentence each
}

// Inspect reports the commit that the tree holds, or a *RefusedError with everything that stands between the two: changed,
// untracked and conflicting files, submodules that are missing, moved or changed, an operation in progress, a history too
// short for what the site asks of it. Other errors mean that the question could not be answered.
func Inspect(ctx context.Context, options Options) (Commit, error) {
	c, err := read(ctx, options)
	if err != nil {
		return Commit{}, err
	}
	if err := c.inspect(ctx); err != nil {
		return Commit{}, err
	}
	return c.commit, nil
}

// committed is what HEAD holds of the published folder.
type committed struct {
	repository repository
	commit     Commit
	subdir     string
	packages   bool              // the site asks for npm packages
	entries    []entry           // of the site's folder, then of what it needs outside
	outside    hugopaths.Outside // what that is

	problems   []Problem // why it cannot be published as it is
	submodules []Problem // likewise those that could not be listed, which the tree's changes name too
}

// read lists the content of HEAD.
func read(ctx context.Context, options Options) (committed, error) {
	subdir, err := options.subdir()
	if err != nil {
		return committed{}, err
	}
	if err := checkSource(options.Dir); err != nil {
		return committed{}, err
	}
	c := committed{subdir: subdir, packages: options.Packages}
	if c.repository, err = openRepository(ctx, options.Dir); err != nil {
		return committed{}, explain(err, options.Dir)
	}
	if c.commit, err = c.repository.commit(ctx); err != nil {
		return committed{}, explain(err, options.Dir)
	}
	c.commit.TreeSHA, err = c.repository.tree(ctx, subdir)
	if absent, ok := errors.AsType[*RefusedError](err); ok {
		c.problems = absent.Problems
		return c, nil
	} else if err != nil {
		return committed{}, err
	}
	return c, c.list(ctx)
}

// list looks into the commit itself.
func (c *committed) list(ctx context.Context) (err error) {
	c.entries, err = c.repository.contentOf(ctx, c.commit.TreeSHA, c.subdir, c.subdir)
	if missing, ok := errors.AsType[*RefusedError](err); ok {
		c.submodules = missing.Problems
	} else if err != nil {
		return err
	}
	if err := c.follow(ctx); err != nil {
		return err
	}
	pointers, err := resolvePointers(ctx, c.repository.dir, c.entries)
	if err != nil {
		return err
	}
	c.problems = append(c.problems, pointers...)
	switch {
	case c.commit.Shallow && c.commit.GitInfo:
		c.problems = append(c.problems, historyCutOff)
	case c.commit.Shallow:
		c.commit.Notes = append(c.commit.Notes, fmt.Sprintf("The clone is shallow: that %s is unambiguous was checked against the objects "+
			"it holds, and a full clone may need more characters (git fetch --unshallow, or fetch-depth: 0 in actions/checkout).", c.commit.Short))
	}
	if c.commit.Detached {
		c.commit.Notes = append(c.commit.Notes, "HEAD is detached: the commit is published, no branch is involved.")
	}
	return nil
}

// inspect compares the tree with the commit.
func (c committed) inspect(ctx context.Context) error {
	changes, err := c.repository.changes(ctx, "")
	if err != nil {
		return err
	}
	operations, err := c.repository.operations(ctx)
	if err != nil {
		return err
	}
	return refuse(slices.Concat(operations, changes, c.problems)...)
}

// historyCutOff is refused only where the history goes into the site.
var historyCutOff = Problem{
	What: "the clone is shallow, but the site takes its dates from the history (enableGitInfo), so they would be wrong",
	Fix:  "run git fetch --unshallow, or set fetch-depth: 0 in actions/checkout",
}

// checkSource explains a folder that git could not even open.
func checkSource(dir string) error {
	info, err := os.Lstat(filepath.Join(dir, ".git"))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s is not the top of a Git working tree: it has no .git, so there is no commit to publish; "+
			"give the top folder of a clone, its .git included, or a Git URL and a ref", dir)
	case err != nil:
		return err
	case info.IsDir():
		return nil
	}
	content, err := os.ReadFile(filepath.Join(dir, ".git"))
	if err != nil {
		return err
	}
	target, ok := strings.CutPrefix(strings.TrimSpace(string(content)), "gitdir: ")
	if !ok {
		return fmt.Errorf("%s/.git is a file that names no repository: clone it anew", dir)
	}
	resolved := target
	if !filepath.IsAbs(resolved) {
		resolved = filepath.Join(dir, resolved)
	}
	if _, err := os.Stat(filepath.Join(resolved, "HEAD")); err == nil {
		if _, err := os.Stat(filepath.Join(commonDir(resolved), "objects")); err == nil {
			return nil
		}
	}
	what := "a linked working tree (git worktree add)"
	if strings.Contains(filepath.ToSlash(target), "/modules/") {
		what = "a submodule of another repository"
	}
	return fmt.Errorf("%s is %s: its .git is a file that points to %s, which is not part of the given folder; "+
		"publish from the main clone, from a clone of its own (git clone %s <new folder>), or from a Git URL and a ref", dir, what, target, ".")
}

// commonDir is the repository a linked working tree shares with its main one.
func commonDir(gitDir string) string {
	content, err := os.ReadFile(filepath.Join(gitDir, "commondir"))
	if err != nil {
		return gitDir
	}
	common := strings.TrimSpace(string(content))
	if filepath.IsAbs(common) {
		return common
	}
	return filepath.Join(gitDir, common)
}

// explain adds the fix to what git says about a repository it cannot read.
func explain(err error, dir string) error {
	if errors.Is(err, git.ErrNotARepository) {
		return fmt.Errorf("%s has a .git that is no repository: clone it anew, or give a Git URL and a ref: %w", dir, err)
	}
	return err
}

// commit reads what HEAD is.
func (r repository) commit(ctx context.Context) (Commit, error) {
	bare, err := r.line(ctx, "rev-parse", "--is-bare-repository")
	if err != nil {
		return Commit{}, err
	}
	if bare == "true" {
		return Commit{}, fmt.Errorf("%s is a bare repository: it has no working tree; clone it and give the clone", r.dir)
	}
	branch, err := r.line(ctx, "symbolic-ref", "--quiet", "--short", "HEAD")
	if err != nil && !exitedWith(err, 1) {
		return Commit{}, err
	}
	commit := Commit{Branch: branch, Detached: branch == ""}

	if commit.SHA, err = r.line(ctx, "rev-parse", "--verify", "--quiet", "HEAD^{commit}"); err != nil {
		if !exitedWith(err, 1) {
			return Commit{}, err
		}
		if _, err := r.line(ctx, "rev-parse", "--verify", "--quiet", "HEAD"); err == nil { // which asks for no object
			return Commit{}, refuse(Problem{
				What: "the clone does not hold its own commit: it borrows objects of another one (.git/objects/info/alternates), or is damaged",
				Fix:  "where the other one is there, git repack -a -d && rm .git/objects/info/alternates; else clone it without --reference and --shared",
			})
		}
		return Commit{}, refuse(Problem{
			What: "the repository has no commit yet",
			Fix:  "commit the site (git add and git commit), then publish",
		})
	}
	if commit.Short, err = r.line(ctx, "rev-parse", "--short=7", commit.SHA); err != nil {
		return Commit{}, err
	}
	shallow, err := r.line(ctx, "rev-parse", "--is-shallow-repository")
	if err != nil {
		return Commit{}, err
	}
	commit.Shallow = shallow == "true"

	described, err := r.line(ctx, "show", "--no-patch", "--format=%ct%x00%s", commit.SHA)
	if err != nil {
		return Commit{}, err
	}
	seconds, subject, _ := strings.Cut(described, "\x00")
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return Commit{}, fmt.Errorf("commit %s has the time %q, which is no number", commit.SHA, seconds)
	}
	commit.Time = time.Unix(unix, 0).UTC()
	commit.Subject = subject
	commit.RemoteURL, err = r.remoteURL(ctx, branch)
	commit.Source = sourceURL(commit.RemoteURL)
	return commit, err
}

// remoteURL is the address of the branch's remote, else of origin, else of the only one there is.
func (r repository) remoteURL(ctx context.Context, branch string) (string, error) {
	listed, err := r.git.Run(ctx, "remote")
	if err != nil {
		return "", err
	}
	remotes := strings.Fields(listed)
	candidates := []string{"origin"}
	if branch != "" {
		own, err := r.line(ctx, "config", "--get", "branch."+branch+".remote")
		if err != nil && !exitedWith(err, 1) {
			return "", err
		}
		candidates = []string{own, "origin"}
	}
	if len(remotes) == 1 {
		candidates = append(candidates, remotes[0])
	}
	for _, candidate := range candidates {
		for _, remote := range remotes {
			if remote == candidate {
				address, err := r.line(ctx, "remote", "get-url", "--", remote)
				return withoutCredentials(address), err
			}
		}
	}
	return "", nil
}

// withoutCredentials removes user and password from a web address, and a password from any other; the user of
// ssh://git@host is part of the address.
func withoutCredentials(address string) string {
	parsed, err := url.Parse(address)
	if err != nil {
		return redact.URL(address) // a password may be why; a path, or the scp form git@host:path, stays as it is
	}
	if parsed.User == nil {
		return address
	}
	if parsed.Scheme == "http" || parsed.Scheme == "https" {
		parsed.User = nil
	} else {
		parsed.User = url.User(parsed.User.Username())
	}
	return parsed.String()
}

// tree finds the published folder in the commit.
func (r repository) tree(ctx context.Context, subdir string) (string, error) {
	if subdir == "" {
		return r.line(ctx, "rev-parse", "--verify", "HEAD^{tree}")
	}
	entries, err := r.listTree(ctx, false, "HEAD", subdir)
	if err != nil {
		return "", err
	}
	switch {
	case len(entries) == 0:
		return "", refuse(Problem{Path: subdir, What: "no such folder in the commit", Fix: "commit it, or name the folder of the site"})
	case entries[0].kind == "commit":
		return "", refuse(Problem{Path: subdir, What: "is a submodule", Fix: "publish it from its own repository"})
	case entries[0].kind != "tree":
		return "", refuse(Problem{Path: subdir, What: "is a file", Fix: "name the folder of the site"})
	}
	return entries[0].object, nil
}

// operations names what git was in the middle of.
func (r repository) operations(ctx context.Context) ([]Problem, error) {
	gitDir, err := r.line(ctx, "rev-parse", "--absolute-git-dir")
	if err != nil {
		return nil, err
	}
	var problems []Problem
	for _, operation := range []struct{ file, name, command string }{
		{"MERGE_HEAD", "merge", "merge"},
		{"rebase-merge", "rebase", "rebase"},
		{"rebase-apply", "rebase or am", "rebase"},
		{"CHERRY_PICK_HEAD", "cherry-pick", "cherry-pick"},
		{"REVERT_HEAD", "revert", "revert"},
	} {
		if _, err := os.Stat(filepath.Join(gitDir, operation.file)); err == nil {
			problems = append(problems, Problem{
				What: "a " + operation.name + " is in progress",
				Fix:  fmt.Sprintf("finish it (git %s --continue) or give it up (git %s --abort)", operation.command, operation.command),
			})
		}
	}
	return problems, nil
}

func parentOf(dir string) string {
	absolute, err := filepath.Abs(dir)
	if err != nil {
		return filepath.Dir(dir)
	}
	return filepath.Dir(absolute)
}

// exitedWith tells git's answer "no", which is an exit code, from a failure.
func exitedWith(err error, code int) bool {
	var failed *git.Error
	return errors.As(err, &failed) && failed.ExitCode == code
}

func splitNUL(text string) []string {
	return strings.FieldsFunc(text, func(r rune) bool { return r == 0 })
}
