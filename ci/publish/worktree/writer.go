package worktree

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// writer creates files with exact modes and times. Everything goes through a root, so that no path and no link can lead out of
// it.
type writer struct {
	dest string
	when time.Time
	root *os.Root

	mu      sync.Mutex
	folders map[string]bool // those that exist
}

func newWriter(dest string, when time.Time) (*writer, error) {
	root, err := os.OpenRoot(dest)
	if err != nil {
		return nil, err
	}
	return &writer{dest: dest, when: when, root: root, folders: map[string]bool{".": true}}, nil
}

// hand is what one goroutine writes with. The folder of its last file stays open, as the files of a commit come folder by
// folder.
type hand struct {
	*writer
	folder *os.Root // nil before the first file
	name   string
}

// enter makes a folder the current one.
func (h *hand) enter(name string) error {
	if h.folder != nil && name == h.name {
		return nil
	}
	if err := h.makeFolder(name); err != nil {
		return err
	}
	opened, err := h.root.OpenRoot(name)
	if err != nil {
		return err
	}
	err = h.leave()
	h.folder, h.name = opened, name
	return err
}

func (h *hand) leave() error {
	if h.folder == nil {
		return nil
	}
	return h.folder.Close()
}

func (w *writer) makeFolder(name string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.folders[name] {
		return nil
	}
	if err := w.root.MkdirAll(name, 0o755); err != nil {
		return err
	}
	for ; !w.folders[name]; name = path.Dir(name) {
		w.folders[name] = true
	}
	return nil
}

// file creates a file with what fill writes to it.
func (h *hand) file(name string, mode fs.FileMode, fill func(io.Writer) error) error {
	if err := h.enter(path.Dir(name)); err != nil {
		return err
	}
	base := path.Base(name)
	file, err := h.folder.OpenFile(base, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	err = errors.Join(fill(file), file.Chmod(mode), file.Close()) // the umask had its say
	return errors.Join(err, h.folder.Chtimes(base, h.when, h.when))
}

func (h *hand) link(name, target string) error {
	if err := h.enter(path.Dir(name)); err != nil {
		return err
	}
	if err := h.folder.Symlink(target, path.Base(name)); err != nil {
		return err
	}
	return setLinkTime(filepath.Join(h.dest, filepath.FromSlash(name)), h.when)
}

// close sets modes and times of the folders, the deepest first: writing into one changes its time.
func (w *writer) close() error {
	names := slices.SortedFunc(maps.Keys(w.folders), func(a, b string) int { return len(b) - len(a) })
	var err error
	for _, folder := range names {
		err = errors.Join(err, w.root.Chmod(folder, 0o755), w.root.Chtimes(folder, w.when, w.when))
	}
	return errors.Join(err, w.root.Close())
}
