package gotool

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"tazlab.net/castle/ci/base/copytree"
)

// ownPrefix marks what a recipe brings itself, as a replace line does that names a folder.
const ownPrefix = "./"

// origins are the folders that kept files come out of.
type origins struct {
	recipe string                            // the recipe's own
	module func(path string) (string, error) // a module's, "" for the one that the recipe is of; it goes with the module cache
}

// of is where a file of the recipe's list is.
func (o origins) of(file string) (string, error) {
	if strings.HasPrefix(file, ownPrefix) {
		return filepath.Join(o.recipe, filepath.FromSlash(file)), nil
	}
	module, below, other := strings.Cut(file, ":")
	if !other {
		module, below = "", file
	}
	folder, err := o.module(module)
	if err == nil && folder == "" {
		err = fmt.Errorf("the module %s is not among what the recipe is built from", module)
	}
	return filepath.Join(folder, filepath.FromSlash(below)), err
}

// keepFiles copies files and folders into a tool's folder.
func keepFiles(from origins, out string, files map[string]string) error {
	for _, name := range sortedKeys(files) {
		source, err := from.of(files[name])
		if err != nil {
			return err
		}
		dest := filepath.Join(out, filepath.FromSlash(name))
		if _, err := os.Stat(source); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("there is no %s, which the recipe wants to keep as %s", files[name], name)
		}
		if err := copytree.Over(source, dest); err != nil {
			return fmt.Errorf("keep %s: %w", files[name], err)
		}
	}
	return nil
}
