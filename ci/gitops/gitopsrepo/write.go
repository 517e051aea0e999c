package gitopsrepo

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Paths are those of the files, sorted.
func (f Files) Paths() []string { return slices.Sorted(maps.Keys(f)) }

// Write puts the files into a folder, which it makes. One that holds something already is refused before anything is written,
// unless over says that files may be replaced; what is not the repository's is then left as it is.
func (f Files) Write(folder string, over bool) error {
	there, err := os.ReadDir(folder)
	switch {
	case os.IsNotExist(err):
	case err != nil:
		return err
	case len(there) > 0 && !over:
		return fmt.Errorf("%s is not empty: it holds %s; name an empty folder, or replace the files of the repository in it with --over", folder, there[0].Name())
	}
	for _, name := range f.Paths() {
		file := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, f[name], 0o644); err != nil {
			return err
		}
	}
	return nil
}
