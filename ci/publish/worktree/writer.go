package worktree

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"time"
)

// writer creates files with exact modes and times. Everything goes through a root, so that no path and no link can lead out of
// it. The folder of the last file stays open, as the files of a commit come folder by folder.
type writer struct {
	dest    string
	when    time.Time
	root    *os.Root
	folders map[string]bool
	current *os.Root // the folder named below
	name    string
}

func newWriter(dest string, when time.Time) (*writer, error) {
	root, err := os.OpenRoot(dest)
	if err != nil {
		return nil, err
	}
	return &writer{dest: dest, when: when, root: root, folders: map[string]bool{".": true}, current: root, name: "."}, nil
}

// enter makes a folder the current one.
func (w *writer) enter(folder string) error {
	if folder == w.name {
		return nil
	}
	if err := w.root.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	opened, err := w.root.OpenRoot(folder)
	if err != nil {
		return err
	}
	err = w.leave()
	w.current, w.name = opened, folder
	for ; !w.folders[folder]; folder = path.Dir(folder) {
		w.folders[folder] = true
	}
	return err
}

func (w *writer) leave() error {
	if w.current == w.root {
		return nil
	}
	return w.current.Close()
}

// file creates a file with what fill writes to it.
func (w *writer) file(name string, mode fs.FileMode, fill func(io.Writer) error) error {
	if err := w.enter(path.Dir(name)); err != nil {
		return err
	}
	base := path.Base(name)
	file, err := w.current.OpenFile(base, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	err = errors.Join(fill(file), file.Chmod(mode), file.Close()) // the umask had its say
	return errors.Join(err, w.current.Chtimes(base, w.when, w.when))
}

func (w *writer) link(name, target string) error {
	if err := w.enter(path.Dir(name)); err != nil {
		return err
	}
	if err := w.current.Symlink(target, path.Base(name)); err != nil {
		return err
	}
	return setLinkTime(filepath.Join(w.dest, filepath.FromSlash(name)), w.when)
}

// close sets modes and times of the folders, the deepest first: writing into one changes its time.
func (w *writer) close() error {
	err := w.leave()
	names := make([]string, 0, len(w.folders))
	for folder := range w.folders {
		names = append(names, folder)
	}
	slices.SortFunc(names, func(a, b string) int { return len(b) - len(a) })
	for _, folder := range names {
		err = errors.Join(err, w.root.Chmod(folder, 0o755), w.root.Chtimes(folder, w.when, w.when))
	}
	return errors.Join(err, w.root.Close())
}
