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

// keepFiles copies files and folders of a module, or of the recipe's own folder, into a tool's folder. The module's are
// read-only and go with the module cache.
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
		if err := copytree.Over(source, dest); err != nil {
			return fmt.Errorf("keep %s: %w", files[name], err)
		}
	}
	return nil
}
