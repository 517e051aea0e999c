package hugopaths

import (
	"errors"
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"tazlab.net/castle/ci/publish/site/hugoconfig"
)

// Problem is a setting that cannot be followed, in the words of package worktree.
type Problem struct{ Path, What, Fix string }

// Outside is what a site needs beside its own folder.
type Outside struct {
	// Paths are files and folders of the repository outside the site's folder, none within another; "." is all of it.
	Paths []string
	// Top is the name that the repository's folder must have, empty where any will do: Hugo looks for a theme that is
	// the repository itself by its name.
	Top string
	// Missing are folders of the site's own that the configuration names and the repository does not have. Hugo
	// passes over them.
	Missing  []Missing
	Problems []Problem
	// Config is the site's configuration.
	Config hugoconfig.Config
}

// Missing is a folder that is not there.
type Missing struct {
	Path string // in the repository
	Said string // where it is named: a file and a setting
}

// Find follows the configuration of the site in a folder of the repository. With packages, the site asks for npm packages whatever
// its files say.
func Find(repository Repository, site string, packages bool) (Outside, error) {
	f := &finder{repository: repository, site: path.Clean(site), asks: packages, modules: map[string]string{}, seen: map[string]bool{}}
	config, err := f.load(f.site)
	if err != nil {
		return Outside{}, err
	}
	f.project, f.found.Config = config, config.Config
	if err := f.workspace(); err != nil {
		return Outside{}, err
	}
	if err := f.components(); err != nil {
		return Outside{}, err
	}
	if err := f.imports(module{dir: f.site, settings: config}); err != nil {
		return Outside{}, err
	}
	if err := f.packages(); err != nil {
		return Outside{}, err
	}
	f.found.Paths = outermost(f.found.Paths)
	return f.found, f.empty()
}

// finder collects what is found.
type finder struct {
	repository Repository
	site       string
	asks       bool // for npm packages
	project    settings
	modules    map[string]string // folders of the Go modules that are in the repository, by their paths
	seen       map[string]bool   // imports that were followed
	found      Outside
	contents   int  // files in the folders of content
	elsewhere  bool // a module or theme may have content as well
}

// settings are a configuration, and the files that it was read from.
type settings struct {
	hugoconfig.Config
	files []file
}

// file is one of a configuration, by its path in the repository.
type file struct{ name, text string }

// load reads the configuration of a site, a theme or a module.
func (f *finder) load(dir string) (settings, error) {
	names, err := f.repository.Files(dir)
	if err != nil {
		return settings{}, err
	}
	var within []string
	for _, name := range names {
		if dir != "." {
			name = strings.TrimPrefix(name, dir+"/")
		}
		within = append(within, name)
	}
	var loaded settings
	var wanted []string
	for _, name := range hugoconfig.Files(within) {
		wanted = append(wanted, path.Join(dir, name))
	}
	read := map[string]string{}
	err = f.repository.Read(wanted, func(name string, content []byte) error {
		read[name] = string(content)
		loaded.files = append(loaded.files, file{name: name, text: string(content)})
		return nil
	})
	if err != nil {
		return settings{}, err
	}
	loaded.Config, err = hugoconfig.Load(within, func(name string) ([]byte, error) {
		return []byte(read[path.Join(dir, name)]), nil
	})
	if broken, ok := errors.AsType[*hugoconfig.FileError](err); ok {
		broken.Name = path.Join(dir, broken.Name)
	}
	return loaded, err
}

// where names the place of a setting: the last file and line that hold its value, since later files win.
func (s settings) where(key, value string) string {
	for _, file := range slices.Backward(s.files) {
		for i, line := range strings.Split(file.text, "\n") {
			if line = strings.TrimSpace(line); strings.Contains(line, value) && !strings.HasPrefix(line, "#") {
				return fmt.Sprintf("%s:%d: %s = %q", file.name, i+1, key, value)
			}
		}
	}
	return fmt.Sprintf("%s = %q", key, value)
}

// setting is a path that a file names.
type setting struct {
	value string
	base  string // the folder that it is relative to
	said  string // file, line, setting
}

// Fixes of a path that cannot be followed.
const (
	fixOutside = "name a folder of this repository, such as a Git submodule"
	fixMissing = "commit it, or take the setting out"
)

// refuse adds a problem of a setting.
func (f *finder) refuse(s setting, what, fix string) {
	f.found.Problems = append(f.found.Problems, Problem{What: s.said + " " + what, Fix: fix})
}

// resolve is the setting's path in the repository; not ok where it leads out of it, which is refused.
func (f *finder) resolve(s setting) (at string, ok bool) {
	value := filepath.ToSlash(s.value)
	if path.IsAbs(value) {
		f.refuse(s, "is an absolute path, which only one machine has", fixOutside)
		return "", false
	}
	at = path.Join(s.base, value)
	if leaves(at) {
		f.refuse(s, "leads out of the repository", fixOutside)
		return "", false
	}
	return at, true
}

// need adds a path, unless it is in the site's folder, and says whether the repository has it.
func (f *finder) need(at string) (present bool, err error) {
	names, err := f.repository.Files(at)
	if err == nil && len(names) > 0 && !Within(at, f.site) {
		f.found.Paths = append(f.found.Paths, at)
	}
	return len(names) > 0, err
}

// required is need for what the build fails without, or is another without.
func (f *finder) required(s setting) (at string, ok bool, err error) {
	at, ok = f.resolve(s)
	if !ok {
		return "", false, nil
	}
	present, err := f.need(at)
	if err == nil && !present {
		f.refuse(s, "is not in the commit", fixMissing)
	}
	return at, present, err
}
