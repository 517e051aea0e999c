// Package filetree creates files and links with exact modes and times below one folder, on several goroutines at once. Neither
// the umask nor the hour, nor a path or link that would lead out of the folder, has a say in what it writes.
package filetree

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

// Writer creates files below a folder. Everything goes through a root, so that no path and no link can lead out of it.
type Writer struct {
	dest string
	when time.Time
	root *os.Root

	mu      sync.Mutex
	folders map[string]bool // those that exist
}

// Open begins to write below dest, an existing folder. Close ends it.
func Open(dest string, when time.Time) (*Writer, error) {
	root, err := os.OpenRoot(dest)
	if err != nil {
		return nil, err
	}
	return &Writer{dest: dest, when: when, root: root, folders: map[string]bool{".": true}}, nil
}

// Hand is what one goroutine writes with. The folder of its last file stays open, as files mostly come folder by folder.
type Hand struct {
	writer *Writer
	folder *os.Root // nil before the first file
	name   string
}

// Hand gives a goroutine its own. Leave ends it.
func (w *Writer) Hand() *Hand { return &Hand{writer: w} }

// enter makes a folder the current one.
func (h *Hand) enter(name string) error {
	if h.folder != nil && name == h.name {
		return nil
	}
	if err := h.writer.makeFolder(name); err != nil {
		return err
	}
	opened, err := h.writer.root.OpenRoot(name)
	if err != nil {
		return err
	}
	err = h.Leave()
	h.folder, h.name = opened, name
	return err
}

// Leave closes the folder of the last file.
func (h *Hand) Leave() error {
	if h.folder == nil {
		return nil
	}
	return h.folder.Close()
}

func (w *Writer) makeFolder(name string) error {
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

// File creates a file, at a path with slashes relative to the folder, with what fill writes to it.
func (h *Hand) File(name string, mode fs.FileMode, fill func(io.Writer) error) error {
	if err := h.enter(path.Dir(name)); err != nil {
		return err
	}
	base := path.Base(name)
	file, err := h.folder.OpenFile(base, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	err = errors.Join(fill(file), file.Chmod(mode), file.Close()) // the umask had its say
	return errors.Join(err, h.folder.Chtimes(base, h.writer.when, h.writer.when))
}

// Link creates a symbolic link with the time of the files. Where it leads to is the caller's to judge.
func (h *Hand) Link(name, target string) error {
	if err := h.enter(path.Dir(name)); err != nil {
		return err
	}
	if err := h.folder.Symlink(target, path.Base(name)); err != nil {
		return err
	}
	return setLinkTime(filepath.Join(h.writer.dest, filepath.FromSlash(name)), h.writer.when)
}

// Close sets modes and times of the folders, the deepest first: writing into one changes its time.
func (w *Writer) Close() error {
	names := slices.SortedFunc(maps.Keys(w.folders), func(a, b string) int { return len(b) - len(a) })
	var err error
	for _, folder := range names {
		err = errors.Join(err, w.root.Chmod(folder, 0o755), w.root.Chtimes(folder, w.when, w.when))
	}
	return errors.Join(err, w.root.Close())
}
