package gitops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"tazlab.net/castle/ci/base/git"
)

// localRef is where the workspace keeps the tip it fetched, apart from the names of the remote.
const localRef = "refs/castle/tip"

// workspace is a bare, partial clone in a temporary folder.
type workspace struct {
	repository Repository
	branch     string // what errors name
	path       string // of the manifest
	dir        string
	git        git.Runner
	rehearsal  bool // nothing is pushed
}

// file is a manifest at one commit.
type file struct {
	mode    string // as git writes it: "100644" or "100755"
	blob    string // the object's name
	content []byte
}

// openWorkspace makes an empty clone. Close removes it.
func openWorkspace(ctx context.Context, repository Repository, manifestPath string) (*workspace, error) {
	repository, err := repository.normalize()
	if err != nil {
		return nil, err
	}
	if err := checkPath(manifestPath); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(repository.TempDir, "castle-gitops-")
	if err != nil {
		return nil, fmt.Errorf("folder for the clone of the GitOps repository: %w", err)
	}
	w := &workspace{repository: repository, branch: repository.Branch, path: manifestPath, dir: dir}
	if err := w.init(ctx); err != nil {
		return nil, errors.Join(w.fail("clone", err), w.Close())
	}
	return w, nil
}

// Close removes the clone.
func (w *workspace) Close() error { return os.RemoveAll(w.dir) }

func (w *workspace) init(ctx context.Context) error {
	// A local remote is read by a child of git that sees configuration files only. Without this line it refuses a
	// repository of another owner, such as a mounted one.
	global := filepath.Join(w.dir, "gitconfig")
	if err := os.WriteFile(global, []byte("[safe]\n\tdirectory = *\n"), 0o600); err != nil {
		return err
	}
	bare := filepath.Join(w.dir, "clone.git")
	w.git = git.Runner{
		Dir:         w.dir,
		Credentials: w.repository.Credentials,
		Env:         []string{"GIT_CONFIG_GLOBAL=" + global},
		// In memory rather than in the clone's configuration, for that would be one more process.
		Config: []git.Setting{
			{Key: "remote.origin.url", Value: w.repository.URL},
			{Key: "remote.origin.promisor", Value: "true"},
			{Key: "remote.origin.partialclonefilter", Value: "blob:none"},
			// The clone is thrown away; what must last is written by the server.
			{Key: "core.fsync", Value: "none"},
		},
	}
	if _, err := w.git.Run(ctx, "init", "--quiet", "--bare", "--template=", bare); err != nil {
		return err
	}
	w.git.Dir = bare
	return nil
}

// fetch gets a branch and returns its tip. Options are those of git fetch.
func (w *workspace) fetch(ctx context.Context, branch string, options ...string) (tip string, err error) {
	args := append([]string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head"}, options...)
	args = append(args, "origin", "+refs/heads/"+branch+":"+localRef)
	if _, err := w.git.Run(ctx, args...); err != nil {
		return "", err
	}
	tip, err = w.git.Run(ctx, "rev-parse", "--verify", "--quiet", localRef+"^{commit}")
	return strings.TrimSpace(tip), err
}

// fetchTip gets the tip of a branch alone, with its trees and no file.
func (w *workspace) fetchTip(ctx context.Context, branch string) (tip string, err error) {
	return w.fetch(ctx, branch, "--depth=1", "--filter=blob:none")
}

// fetchSince gets what a branch gained since its tip was fetched, files included: they are few, and the manifest is
// probably among them.
func (w *workspace) fetchSince(ctx context.Context, branch string) (tip string, err error) {
	return w.fetch(ctx, branch, "--no-filter")
}

// fetchHistory gets all commits and trees of a branch, and no file; fetchBlobs gets those that matter.
func (w *workspace) fetchHistory(ctx context.Context, branch string) (tip string, err error) {
	return w.fetch(ctx, branch, "--filter=blob:none")
}

// fetchBlobs gets files by the names of their objects, all in one request. It is what git does by itself, one by one, for
// each file that is read and not here.
func (w *workspace) fetchBlobs(ctx context.Context, blobs []string) error {
	fetcher := w.git
	fetcher.Config = append([]git.Setting{{Key: "fetch.negotiationAlgorithm", Value: "noop"}}, w.git.Config...)
	_, err := fetcher.RunInput(ctx, strings.NewReader(strings.Join(blobs, "\n")+"\n"),
		"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--recurse-submodules=no", "--filter=blob:none", "--stdin", "origin")
	return err
}

// isAncestor tells whether a branch that was at one commit got to the other by pushes that were not forced.
func (w *workspace) isAncestor(ctx context.Context, older, newer string) (bool, error) {
	_, err := w.git.Run(ctx, "merge-base", "--is-ancestor", older, newer)
	var failed *git.Error
	if errors.As(err, &failed) && failed.ExitCode == 1 {
		return false, nil
	}
	return err == nil, err
}

// hasBranch asks the remote whether it has a branch.
func (w *workspace) hasBranch(ctx context.Context, branch string) (bool, error) {
	ref := "refs/heads/" + branch
	listed, err := w.git.Run(ctx, "ls-remote", "--quiet", "origin", ref)
	if err != nil {
		return false, err
	}
	for line := range strings.Lines(listed) { // the pattern also matches a longer name that ends in it
		if _, name, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok && name == ref {
			return true, nil
		}
	}
	return false, nil
}

// read returns the manifest at a commit.
func (w *workspace) read(ctx context.Context, commit string) (file, error) {
	listed, err := w.git.Run(ctx, "ls-tree", "-z", "--full-tree", commit, "--", w.path)
	if err != nil {
		return file{}, err
	}
	if listed == "" {
		return file{}, w.pathNotFound(ctx, commit)
	}
	var mode, kind, blob string
	if _, err := fmt.Sscanf(listed, "%s %s %s", &mode, &kind, &blob); err != nil {
		return file{}, fmt.Errorf("git ls-tree answered %q: %w", listed, err)
	}
	if mode != "100644" && mode != "100755" {
		failure := w.newError("read", ErrPathNotFound)
		failure.Detail = fmt.Sprintf("%s is %s, not a regular file", w.path, modeName(mode))
		failure.Fix = "give the path of the manifest itself"
		return file{}, failure
	}
	content, err := w.git.Run(ctx, "cat-file", "blob", blob)
	if err != nil {
		return file{}, err
	}
	return file{mode: mode, blob: blob, content: []byte(content)}, nil
}

// modeName tells what a tree entry that is no regular file is.
func modeName(mode string) string {
	switch mode {
	case "040000":
		return "a folder"
	case "120000":
		return "a symbolic link"
	case "160000":
		return "a submodule"
	}
	return "of mode " + mode
}

// pathNotFound names files of the same name elsewhere.
func (w *workspace) pathNotFound(ctx context.Context, commit string) error {
	failure := w.newError("read", ErrPathNotFound)
	failure.Detail = w.path
	failure.Fix = "check the path of the manifest, given from the top of the repository"
	all, err := w.git.Run(ctx, "ls-tree", "-rz", "--full-tree", "--name-only", commit)
	if err != nil {
		failure.Err = err
		return failure
	}
	const shown = 5
	var near []string
	for name := range strings.SplitSeq(all, "\x00") {
		if path.Base(name) == path.Base(w.path) && len(near) < shown {
			near = append(near, name)
		}
	}
	if len(near) > 0 {
		failure.Fix = "did you mean " + strings.Join(near, " or ")
	}
	return failure
}

// push moves a branch of the remote to a commit that descends from its tip, or creates it.
func (w *workspace) push(ctx context.Context, commit, branch string) error {
	return w.pushWith(ctx, commit, branch)
}

func (w *workspace) pushWith(ctx context.Context, commit, branch string, options ...string) error {
	args := append([]string{"push", "--quiet"}, options...)
	if w.rehearsal {
		args = append(args, "--dry-run")
	}
	_, err := w.git.Run(ctx, append(args, "origin", commit+":refs/heads/"+branch)...)
	return err
}
