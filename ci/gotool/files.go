package gotool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ownPrefix marks what a recipe brings itself, as a replace line does that
// names a folder.
const ownPrefix = "./"

// keepFiles copies files and folders of a module, or of the recipe's own
// folder, into a tool's folder. The module's are read-only and go with the
// module cache.
func keepFiles(module, recipe, out string, files map[string]string) error {
	for _, name := range sortedKeys(files) {
		from := module
		if strings.HasPrefix(files[name], ownPrefix) {
			from = recipe
		}
		source, dest := filepath.Join(from, filepath.FromSlash(files[name])), filepath.Join(out, filepath.FromSlash(name))
		if _, err := os.Stat(source); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("there is no %s, which the recipe wants to keep as %s", files[name], name)
		}
		if err := copyTree(source, dest); err != nil {
			return fmt.Errorf("keep %s: %w", files[name], err)
		}
	}
	return nil
}

// copyTree copies a file, or a folder and all below it.
func copyTree(source, dest string) error {
	return filepath.WalkDir(source, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		below, err := filepath.Rel(source, name)
		if err != nil {
			return err
		}
		target := filepath.Join(dest, below)
		if entry.IsDir() {
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
