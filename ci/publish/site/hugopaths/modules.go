package hugopaths

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	gomodule "golang.org/x/mod/module"

	"tazlab.net/castle/ci/publish/site/hugoconfig"
)

// Files of Go's modules, and where Hugo keeps vendored ones.
const (
	goMod      = "go.mod"
	vendorDir  = "_vendor"
	vendorList = "modules.txt"
)

// module is the site, a theme or a Hugo module in the repository.
// config is a part of a configuration.
type config = hugoconfig.Config

type module struct {
	dir      string
	settings settings
}

// workspace reads go.mod and the workspace file: which modules are folders of this repository. A vendored site needs
// neither.
func (f *finder) workspace() error {
	file := f.project.Part("module").Text("workspace", "off")
	var workFile string
	if file != "off" && file != "" {
		s := setting{value: file, base: f.site, said: f.project.where("module.workspace", file)}
		at, present, err := f.required(s)
		if err != nil || !present {
			return err
		}
		workFile = at
		if _, err := f.need(at + ".sum"); err != nil {
			return err
		}
	}
	vendored, err := f.repository.Files(path.Join(f.site, vendorDir, vendorList))
	if err != nil || len(vendored) > 0 && f.project.Text("ignoreVendorPaths", "") == "" || !f.importsModules() {
		return err
	}
	if err := f.replaced(path.Join(f.site, goMod)); err != nil {
		return err
	}
	if workFile == "" {
		return nil
	}
	text, err := f.read(workFile)
	if err != nil {
		return err
	}
	work, err := modfile.ParseWork(workFile, text, nil)
	if err != nil {
		return err
	}
	for _, use := range work.Use {
		s := setting{
			value: use.Path, base: path.Dir(workFile),
			said: fmt.Sprintf("%s:%d: use %s", workFile, use.Syntax.Start.Line, use.Path),
		}
		at, present, err := f.required(s)
		if err != nil {
			return err
		}
		if !present {
			continue
		}
		if err := f.used(at); err != nil {
			return err
		}
	}
	return f.replacements(workFile, work.Replace)
}

// importsModules reports whether Hugo asks Go for modules at all.
func (f *finder) importsModules() bool {
	return slices.ContainsFunc(f.project.imports(), func(imported config) bool {
		return gomodule.CheckPath(imported.Text("path", "")) == nil
	})
}

// used reads the go.mod of a module of the workspace.
func (f *finder) used(dir string) error {
	name := path.Join(dir, goMod)
	parsed, err := f.goMod(name)
	if err != nil || parsed == nil {
		return err
	}
	if parsed.Module != nil {
		f.modules[parsed.Module.Mod.Path] = dir
	}
	return f.replacements(name, parsed.Replace)
}

// replaced reads which modules a go.mod replaces with folders.
func (f *finder) replaced(name string) error {
	parsed, err := f.goMod(name)
	if err != nil || parsed == nil {
		return err
	}
	return f.replacements(name, parsed.Replace)
}

// goMod is a go.mod, nil where there is none. One that cannot be read is left to Go, which says what is wrong with
// it.
func (f *finder) goMod(name string) (*modfile.File, error) {
	names, err := f.repository.Files(name)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	text, err := f.read(name)
	if err != nil {
		return nil, err
	}
	parsed, err := modfile.Parse(name, text, func(_, version string) (string, error) { return version, nil })
	if err != nil {
		return nil, nil
	}
	return parsed, nil
}

func (f *finder) replacements(name string, replaces []*modfile.Replace) error {
	for _, replace := range replaces {
		if replace.New.Version != "" {
			continue
		}
		s := setting{
			value: replace.New.Path, base: path.Dir(name),
			said: fmt.Sprintf("%s:%d: replace %s => %s", name, replace.Syntax.Start.Line, replace.Old.Path, replace.New.Path),
		}
		at, present, err := f.required(s)
		if err != nil {
			return err
		}
		if present {
			f.modules[replace.Old.Path] = at
		}
	}
	return nil
}

// imports are the modules and themes that a configuration names.
func (s settings) imports() []config {
	named := s.Part("module").Parts("imports")
	for _, theme := range s.Texts("theme") {
		named = append(named, config{"path": theme})
	}
	return named
}

// imports follows the modules and themes of one that is in the repository.
func (f *finder) imports(of module) error {
	for _, imported := range of.settings.imports() {
		name := imported.Text("path", "")
		if name == "" || f.seen[name] || imported.Bool("disable", false) {
			continue
		}
		f.seen[name] = true
		f.elsewhere = true
		dir, err := f.locate(of, name)
		if err != nil {
			return err
		}
		if dir == "" {
			continue
		}
		next := module{dir: dir}
		if !imported.Bool("ignoreConfig", false) {
			if next.settings, err = f.load(dir); err != nil {
				return err
			}
		}
		if err := f.mounts(next, imported); err != nil {
			return err
		}
		if imported.Bool("ignoreImports", false) {
			continue
		}
		if err := f.imports(next); err != nil {
			return err
		}
	}
	return nil
}

// locate is the folder of an import, empty where it is not in the repository: a module that is downloaded, or what
// was refused.
func (f *finder) locate(of module, name string) (dir string, err error) {
	replacement, replaced := f.project.replacement(name)
	if replaced {
		name = replacement
	}
	for _, owner := range []string{of.dir, f.site} {
		vendored := path.Join(owner, vendorDir, name)
		if !filepath.IsLocal(name) {
			break
		}
		if names, err := f.repository.Files(vendored); err != nil || len(names) > 0 {
			return vendored, err
		}
	}
	if dir, known := f.modules[name]; known {
		return dir, nil
	}
	project := of.dir == f.site || replaced
	themesDir := f.project.Text("themesDir", "themes")
	said := f.project.where("theme", name)
	if replaced {
		said = f.project.where("module.replacements", name)
	}
	s := setting{value: path.Join(filepath.ToSlash(themesDir), name), base: f.site, said: said}
	switch {
	case path.IsAbs(name) && project:
		s.value = name
	case path.IsAbs(themesDir):
		s.said = f.project.where("themesDir", themesDir)
	}
	at := path.Join(s.base, s.value)
	if present, err := f.isTheme("."); err != nil {
		return "", err
	} else if present && !path.IsAbs(s.value) && path.Dir(at) == ".." && at != ".." {
		return f.repositoryAs(path.Base(at), s)
	}
	if gomodule.CheckPath(name) == nil && !replaced {
		// A module that is downloaded, unless it is stored as a theme.
		if names, err := f.repository.Files(at); leaves(at) || err != nil || len(names) == 0 {
			return "", err
		}
	}
	at, ok := f.resolve(s)
	if !ok {
		return "", nil
	}
	present, err := f.need(at)
	switch {
	case err != nil || present:
		return at, err
	case !Within(at, f.site): // else Hugo itself says so
		f.refuse(s, "is not in the commit, where it would be "+at, "commit it there, or add it as a Git submodule")
	}
	return "", nil
}

// repositoryAs takes the repository itself for the theme of that name, as it is in a clone in a folder of that name.
func (f *finder) repositoryAs(name string, s setting) (dir string, err error) {
	if f.found.Top != "" && f.found.Top != name {
		f.refuse(s, fmt.Sprintf("is beside the repository, whose folder is %s already", f.found.Top), fixOutside)
		return "", nil
	}
	f.found.Top = name
	_, err = f.need(".")
	return ".", err
}

// isTheme reports whether a folder has what a theme has.
func (f *finder) isTheme(dir string) (bool, error) {
	for _, part := range []string{"theme.toml", "layouts"} {
		if names, err := f.repository.Files(path.Join(dir, part)); err != nil || len(names) > 0 {
			return true, err
		}
	}
	return false, nil
}

// replacement is what module.replacements has instead of a module.
func (s settings) replacement(name string) (replacement string, replaced bool) {
	pairs := s.Part("module").Texts("replacements")
	if len(pairs) == 1 {
		pairs = strings.Split(pairs[0], ",")
	}
	for _, pair := range pairs {
		if old, instead, isPair := strings.Cut(pair, "->"); isPair && strings.TrimSpace(old) == name {
			return strings.TrimSpace(instead), true
		}
	}
	return "", false
}

// mounts follows the mounts of a module, which older versions of Hugo let lead out of it. Newer ones refuse that
// themselves.
func (f *finder) mounts(of module, imported config) error {
	mounts := imported.Parts("mounts")
	if len(mounts) == 0 {
		mounts = of.settings.Part("module").Parts("mounts")
	}
	for _, mount := range mounts {
		at := path.Join(of.dir, filepath.ToSlash(mount.Text("source", "")))
		if leaves(at) || f.made(at) || Within(at, of.dir) {
			continue
		}
		if _, err := f.need(at); err != nil {
			return err
		}
	}
	return nil
}
