package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"tazlab.net/castle/ci/publish/worktree/filetree"
)

// Export writes what HEAD holds of the folder to dest, which must be empty or missing, and returns where in it the site is.
// Submodules below the folder come along at their recorded commits; whatever else is in the tree does not. The same commit
// gives the same files everywhere: modes are 0644 or 0755, times are the commit's, content is that of the blobs. Where a blob is
// a Git LFS pointer, it is the content that the pointer names, taken from the clone and compared with the pointer.
//
// What the site's configuration names outside the folder comes along. Then, and where the site sets Hugo's
// enableGitInfo, the site is the same folder in dest as in the repository; else it is dest itself. With enableGitInfo
// dest is a repository with the history of HEAD, because Hugo looks files up by their path in it.
//
// It refuses, with a *RefusedError, missing submodules, Git LFS pointers whose content the clone lacks, symbolic
// links that lead out of what is exported, and settings of the site that lead out of the commit. After an error dest
// holds an unspecified part.
func Export(ctx context.Context, options Options, dest string) (site string, err error) {
	c, err := read(ctx, options)
	if err != nil {
		return "", err
	}
	return c.export(ctx, dest)
}

// Publishable is Inspect and Export at once: the tree is compared with the commit while the commit is written to dest.
func Publishable(ctx context.Context, options Options, dest string) (commit Commit, site string, err error) {
	c, err := read(ctx, options)
	if err != nil {
		return Commit{}, "", err
	}
	var inspected, exported error
	var tasks sync.WaitGroup
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	tasks.Go(func() {
		if inspected = c.inspect(ctx); inspected != nil {
			cancel()
		}
	})
	site, exported = c.export(ctx, dest)
	tasks.Wait()
	// What is wrong with the tree says more, and all at once.
	return c.commit, site, cmp.Or(inspected, exported)
}

// Part writes what HEAD holds at some paths of the repository, each a file or a folder, to dest, which is to be there and empty.
// What is missing is left out, as are symbolic links and submodules; a Git LFS pointer stays one.
func Part(ctx context.Context, dir, dest string, paths ...string) error {
	r, err := openRepository(ctx, dir)
	if err != nil {
		return err
	}
	entries, err := r.listTree(ctx, true, "HEAD", paths...)
	if err != nil {
		return err
	}
	entries = slices.DeleteFunc(entries, func(e entry) bool { return e.kind != "blob" || e.mode == modeSymlink })
	for i := range entries {
		entries[i].source = entries[i].path
	}
	return write(ctx, entries, dest, time.Now(), nil)
}

func (c committed) export(ctx context.Context, dest string) (site string, err error) {
	if err := refuse(slices.Concat(c.submodules, c.problems)...); err != nil {
		return "", err
	}
	if err := makeEmpty(dest); err != nil {
		return "", err
	}
	if !c.mirrored() {
		return dest, write(ctx, c.entries, dest, c.commit.Time, c.linksInside)
	}
	top := filepath.Join(dest, c.outside.Top)
	site = filepath.Join(top, filepath.FromSlash(c.subdir))
	if err := os.MkdirAll(site, 0o755); err != nil {
		return "", err
	}
	if c.commit.GitInfo {
		if err := c.repository.copyHistory(ctx, c.commit.SHA, top); err != nil {
			return "", err
		}
	}
	entries := slices.Clone(c.entries)
	for i := range entries {
		entries[i].path = entries[i].source
	}
	return site, write(ctx, entries, top, c.commit.Time, c.linksInside)
}

func makeEmpty(dest string) error {
	if err := os.MkdirAll(dest, 0o755); err != nil {
		return err
	}
	present, err := os.ReadDir(dest)
	if err != nil {
		return err
	}
	if len(present) > 0 {
		return fmt.Errorf("%s is not empty: name a new folder", dest)
	}
	return nil
}

// write creates the files, and refuses the links that inside does not know.
func write(ctx context.Context, entries []entry, dest string, when time.Time, inside linkCheck) error {
	writer, err := filetree.Open(dest, when)
	if err != nil {
		return err
	}
	problems, err := writeEntries(ctx, writer, entries, inside)
	if err := errors.Join(err, writer.Close()); err != nil {
		return err
	}
	return refuse(problems...)
}

// linkCheck reports whether a link with this target may be exported.
type linkCheck func(link entry, target string) bool

// writeEntries writes files and links, those from Git LFS first, and lists the links that may not be. Reading from
// Git and writing go on on all CPUs.
func writeEntries(ctx context.Context, w *filetree.Writer, entries []entry, inside linkCheck) ([]Problem, error) {
	var blobs, pointers []entry
	for _, e := range entries {
		if !filepath.IsLocal(filepath.FromSlash(e.path)) || holdsGitDir(e.path) {
			return nil, fmt.Errorf("the commit holds the path %q, which git itself would not check out", e.path)
		}
		if e.content == "" {
			blobs = append(blobs, e)
		} else {
			pointers = append(pointers, e)
		}
	}
	if err := writeStored(w, pointers); err != nil {
		return nil, err
	}
	runs := batches(blobs)
	problems := make([][]Problem, len(runs))
	tasks, ctx := errgroup.WithContext(ctx)
	tasks.SetLimit(runtime.GOMAXPROCS(0))
	for i, run := range runs {
		tasks.Go(func() (err error) {
			problems[i], err = writeBlobs(ctx, w, run, inside)
			return err
		})
	}
	err := tasks.Wait()
	return slices.Concat(problems...), err
}

// writeStored writes what Git LFS keeps.
func writeStored(w *filetree.Writer, entries []entry) (err error) {
	h := w.Hand()
	defer func() { err = errors.Join(err, h.Leave()) }()
	for _, e := range entries {
		if err := h.File(e.path, e.permissions(), func(to io.Writer) error { return e.pointer.copy(to, e.content) }); err != nil {
			return fmt.Errorf("%s: %w", e.source, err)
		}
	}
	return nil
}

// writeBlobs writes what one git process reads.
func writeBlobs(ctx context.Context, w *filetree.Writer, run []entry, inside linkCheck) (problems []Problem, err error) {
	h := w.Hand()
	defer func() { err = errors.Join(err, h.Leave()) }()
	err = readBatch(ctx, run, func(e entry, content []byte) error {
		switch {
		case e.mode == modeSymlink && !inside(e, string(content)):
			problems = append(problems, Problem{
				Path: e.source,
				What: fmt.Sprintf("a symbolic link to %s, outside the published folder", content),
				Fix:  "commit the file itself, or link inside the folder",
			})
			return nil
		case e.mode == modeSymlink:
			return h.Link(e.path, string(content))
		default:
			return h.File(e.path, e.permissions(), func(to io.Writer) error {
				_, err := to.Write(content)
				return err
			})
		}
	})
	return problems, err
}

// permissions are those of an exported file.
func (e entry) permissions() fs.FileMode {
	if e.mode == modeExecutable {
		return 0o755
	}
	return 0o644
}

func holdsGitDir(name string) bool {
	return slices.ContainsFunc(strings.Split(name, "/"), func(part string) bool { return strings.EqualFold(part, ".git") })
}

// linkTarget is the path that a link leads to; not ok where that is not below the same top. "Up" counts only at the
// target's beginning, from the link's own folder, which is a real one: after the name of another link it could lead
// anywhere.
func linkTarget(link, target string) (at string, ok bool) {
	if target == "" || path.IsAbs(target) {
		return "", false
	}
	named := false
	for part := range strings.SplitSeq(target, "/") {
		switch {
		case part == ".." && named:
			return "", false
		case part != ".." && part != "." && part != "":
			named = true
		}
	}
	at = path.Join(path.Dir(link), target)
	return at, filepath.IsLocal(at)
}

// copyHistory makes dest a repository whose detached HEAD is the commit. A bundle is a file, so that git starts no second
// process in the source, which would not inherit the permission to read another user's repository.
func (r repository) copyHistory(ctx context.Context, sha, dest string) error {
	copied := r
	copied.dir = dest
	copied.git.Dir = dest
	format, err := r.line(ctx, "rev-parse", "--show-object-format")
	if err != nil {
		return err
	}
	if _, err := copied.git.Run(ctx, "init", "--quiet", "--template=", "--object-format="+format); err != nil {
		return err
	}
	bundle, err := filepath.Abs(filepath.Join(dest, ".git", "history.bundle"))
	if err != nil {
		return err
	}
	if _, err := r.git.Run(ctx, "bundle", "create", "--quiet", bundle, "HEAD"); err != nil {
		return err
	}
	if _, err := copied.git.Run(ctx, "fetch", "--quiet", "--no-tags", "--no-write-fetch-head", bundle, "HEAD"); err != nil {
		return err
	}
	if _, err := copied.git.Run(ctx, "update-ref", "--no-deref", "HEAD", sha); err != nil {
		return err
	}
	return os.Remove(bundle)
}
