// Package copytree copies files and folders. Unlike os.CopyFS it lays one folder over another.
package copytree

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
)

// Over copies a file, or a folder and all below it, over what is there; folders of the names in skip are left out. The
// copies are ordinary files that their owner may write to, which those of Go's module cache are not.
func Over(source, dest string, skip ...string) error {
	return filepath.WalkDir(source, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(source, name)
		if err != nil {
			return err
		}
		target := filepath.Join(dest, below)
		switch {
		case entry.IsDir() && slices.Contains(skip, entry.Name()):
			return filepath.SkipDir
		case entry.IsDir():
			return os.MkdirAll(target, 0o755)
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o644)
	})
}
