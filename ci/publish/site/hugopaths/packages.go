package hugopaths

import (
	"errors"
	"path"
	"regexp"
	"slices"

	gomodule "golang.org/x/mod/module"

	"tazlab.net/castle/ci/publish/site/npmlock"
)

const packageList = "package.json"

// packages finds the lock file of npm above a site that has none of its own, and with it what `npm ci` asks for: the
// lists of all folders that the lock links to, and of those that the site depends on everything. A lock that no part
// of the site asks for, such as that of an application beside it, is left alone.
func (f *finder) packages() error {
	own := append(slices.Clone(npmlock.Names), "node_modules")
	if present, err := f.anyOf(f.site, own...); err != nil || present != "" {
		return err
	}
	root, name, err := f.lockAbove()
	if err != nil || name == "" {
		return err
	}
	if !f.asks {
		if asked, err := f.asksForPackages(); err != nil || !asked {
			return err
		}
	}
	var lock npmlock.Lock
	err = f.repository.Read([]string{path.Join(root, name)}, func(_ string, text []byte) (err error) {
		lock, err = npmlock.Parse(text)
		return err
	})
	if err != nil {
		f.found.Problems = append(f.found.Problems, Problem{
			Path: path.Join(root, name), What: "cannot be read: " + err.Error(), Fix: "run npm install and commit it",
		})
		return nil
	}
	from := ""
	if _, isWorkspace := lock.Packages[relative(f.site, root)]; isWorkspace {
		from = relative(f.site, root)
	}
	needed := []string{name, packageList, ".npmrc"}
	for _, folder := range lock.Folders() {
		needed = append(needed, path.Join(folder, packageList))
	}
	for _, at := range append(needed, lock.Needed(from)...) {
		at = path.Join(root, at)
		if leaves(at) {
			f.found.Problems = append(f.found.Problems, Problem{
				Path: path.Join(root, name), What: "links to " + at + ", outside the repository", Fix: fixOutside,
			})
			continue
		}
		if _, err := f.need(at); err != nil {
			return err
		}
	}
	return nil
}

// lockAbove is the nearest lock file above the site that has a list of packages beside it.
func (f *finder) lockAbove() (dir, name string, err error) {
	for dir = f.site; dir != "."; {
		dir = path.Dir(dir)
		listed, err := f.anyOf(dir, packageList)
		if err != nil {
			return "", "", err
		}
		if name, err = f.anyOf(dir, npmlock.Names...); err != nil || name != "" && listed != "" {
			return dir, name, err
		}
	}
	return "", "", nil
}

// anyOf is the first of some names that a folder has, empty where it has none of them.
func (f *finder) anyOf(dir string, names ...string) (string, error) {
	for _, name := range names {
		if found, err := f.repository.Files(path.Join(dir, name)); err != nil || len(found) > 0 {
			return name, err
		}
	}
	return "", nil
}

var (
	packageUser = regexp.MustCompile(`(?i)postcss|tailwindcss|babel|js\.(?:build|batch)|node_modules`)
	scanned     = []string{".html", ".toml", ".yaml", ".yml", ".json"}
)

// asksForPackages reports whether the site has a list of packages itself, or a template or configuration that needs
// some. What a module that is downloaded needs is not known, and taken for granted.
func (f *finder) asksForPackages() (bool, error) {
	if listed, err := f.anyOf(f.site, packageList); err != nil || listed != "" {
		return listed != "", err
	}
	for name := range f.seen {
		if gomodule.CheckPath(name) == nil {
			return true, nil
		}
	}
	var names []string
	for _, at := range append([]string{f.site}, f.found.Paths...) {
		files, err := f.repository.Files(at)
		if err != nil {
			return false, err
		}
		for _, file := range files {
			if packageUser.MatchString(path.Base(file)) {
				return true, nil
			}
			if isTemplate := slices.Contains(scanned, path.Ext(file)); isTemplate {
				names = append(names, file)
			}
		}
	}
	err := f.repository.Read(names, func(_ string, text []byte) error {
		if packageUser.Match(text) {
			return errAsks
		}
		return nil
	})
	if errors.Is(err, errAsks) {
		return true, nil
	}
	return false, err
}

var errAsks = errors.New("it asks for packages")

// relative is a path of the repository, as it is called in one of its folders.
func relative(name, folder string) string {
	if folder == "." {
		return name
	}
	return name[len(folder)+1:]
}
