package hugopaths

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// Repository is the content of a commit, or of a folder on disk. Paths have slashes and are relative to its top,
// which is ".".
type Repository interface {
	// Files lists all files at or below a path, sorted; none where nothing is there.
	Files(at string) ([]string, error)
	// Read hands the content of each file to use, which may keep it no longer than it runs, and ends with its first
	// error.
	Read(names []string, use func(name string, content []byte) error) error
}

// Folder is a repository on disk, as it is. What Git keeps in it is left out.
type Folder string

// Files lists the regular files at or below a path.
func (f Folder) Files(at string) ([]string, error) {
	var names []string
	top := string(f)
	err := filepath.WalkDir(filepath.Join(top, filepath.FromSlash(at)), func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && entry.Name() == ".git":
			return fs.SkipDir
		case !entry.Type().IsRegular():
			return nil
		}
		relative, err := filepath.Rel(top, name)
		names = append(names, filepath.ToSlash(relative))
		return err
	})
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, nil
	}
	slices.Sort(names)
	return names, err
}

// Read reads files.
func (f Folder) Read(names []string, use func(name string, content []byte) error) error {
	for _, name := range names {
		content, err := os.ReadFile(filepath.Join(string(f), filepath.FromSlash(name)))
		if err == nil {
			err = use(name, content)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Within reports whether a path is a folder or something in it.
func Within(name, folder string) bool {
	return folder == "." || name == folder || strings.HasPrefix(name, folder+"/")
}

// outermost drops the paths that are within others, and sorts the rest.
func outermost(paths []string) []string {
	slices.Sort(paths)
	var kept []string
	for _, name := range slices.Compact(paths) {
		if !slices.ContainsFunc(kept, func(folder string) bool { return Within(name, folder) }) {
			kept = append(kept, name)
		}
	}
	return kept
}

// leaves reports whether a path, cleaned, leads out of the repository.
func leaves(name string) bool {
	return path.IsAbs(name) || name == ".." || strings.HasPrefix(name, "../")
}

// read returns one file's content.
func (f *finder) read(name string) (text []byte, err error) {
	err = f.repository.Read([]string{name}, func(_ string, content []byte) error {
		text = bytes.Clone(content)
		return nil
	})
	return text, err
}
