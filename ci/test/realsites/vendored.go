package realsites

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
)

// vendor puts modules into the site's _vendor folder, as `hugo mod vendor` does: of each the folders that are mounted and its
// configuration, with a list of what stands there. Nothing is downloaded while the site is built then.
func (t *tree) vendor(modules ...vendored) error {
	var list strings.Builder
	for _, module := range modules {
		dir, err := t.theme(module.path)
		if err != nil {
			return err
		}
		version, err := themeVersion(module.path)
		if err != nil {
			return err
		}
		fmt.Fprintf(&list, "# %s %s\n", module.path, version)
		for _, part := range module.parts {
			if err := t.copy(filepath.Join(dir, part), path.Join("_vendor", module.path, part)); err != nil {
				return err
			}
		}
	}
	return t.write(map[string]string{"_vendor/modules.txt": list.String()})
}

// vendored is a module and the files and folders of it that a site needs.
type vendored struct {
	path  string
	parts []string
}

// themeVersion is the version of a theme in the list of themes.
func themeVersion(module string) (string, error) {
	text, err := themes.ReadFile("themes/go.mod.in")
	if err != nil {
		return "", err
	}
	list, err := modfile.ParseLax("themes/go.mod.in", text, nil)
	if err != nil {
		return "", err
	}
	for _, require := range list.Require {
		if require.Mod.Path == module {
			return require.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("themes/go.mod.in has no %s", module)
}
