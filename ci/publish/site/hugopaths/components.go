package hugopaths

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"tazlab.net/castle/ci/publish/site/hugoconfig"
)

// component is a kind of file that Hugo looks for in a folder. What is in archetypes takes no part in a build.
type component struct {
	target string // of a mount
	keys   []string
}

const content = "content"

var components = []component{
	{content, []string{"contentDir"}},
	{"data", []string{"dataDir"}},
	{"layouts", []string{"layoutDir"}},
	{"i18n", []string{"i18nDir"}},
	{"assets", []string{"assetDir"}},
	{"static", append([]string{"staticDir"}, numbered("staticDir", 11)...)},
}

func numbered(key string, count int) []string {
	keys := make([]string, count)
	for i := range keys {
		keys[i] = fmt.Sprintf("%s%d", key, i)
	}
	return keys
}

// components finds the site's folders: of each kind those that are mounted, and where none is, those that a key
// names.
func (f *finder) components() error {
	mounted := map[string]bool{}
	for _, mount := range f.project.Part("module").Parts("mounts") {
		target, _, _ := strings.Cut(path.Clean(mount.Text("target", "")), "/")
		source := mount.Text("source", "")
		if source == "" || target == "archetypes" {
			continue
		}
		mounted[target] = true
		if err := f.component(target, "module.mounts.source", source); err != nil {
			return err
		}
	}
	for _, c := range components {
		if mounted[c.target] {
			continue
		}
		if err := f.named(c, "", f.project.Config); err != nil {
			return err
		}
		languages := f.project.Part("languages")
		for _, code := range slices.Sorted(maps.Keys(languages)) {
			if err := f.named(c, "languages."+code+".", languages.Part(code)); err != nil {
				return err
			}
		}
	}
	return nil
}

// named follows the keys of a component.
func (f *finder) named(c component, prefix string, config hugoconfig.Config) error {
	for _, key := range c.keys {
		for _, source := range config.Texts(key) {
			if source == "" {
				continue
			}
			if err := f.component(c.target, prefix+key, source); err != nil {
				return err
			}
		}
	}
	return nil
}

// component follows one folder of the site's own.
func (f *finder) component(target, key, source string) error {
	s := setting{value: source, base: f.site, said: f.project.where(key, source)}
	at, ok := f.resolve(s)
	if !ok {
		return nil
	}
	present, err := f.need(at)
	switch {
	case err != nil:
		return err
	case present && target == content:
		names, err := f.repository.Files(at)
		f.contents += len(names)
		return err
	case present || f.made(at):
	case Within(at, f.site):
		f.found.Missing = append(f.found.Missing, Missing{Path: at, Said: s.said})
	default:
		f.refuse(s, "is not in the commit", fixMissing)
	}
	return nil
}

// made reports whether a path is of what is made anew for each build, and so is no part of a commit.
func (f *finder) made(at string) bool {
	return slices.Contains(strings.Split(at, "/"), "node_modules") || path.Base(at) == "hugo_stats.json" ||
		at == path.Join(f.site, f.project.Text("publishDir", "public"))
}

// empty refuses a site whose configuration names where its content is, and there is none.
func (f *finder) empty() error {
	if f.contents > 0 || f.elsewhere || len(f.found.Problems) > 0 {
		return nil
	}
	if f.project.Text("contentDir", "") == "" {
		if names, err := f.repository.Files(path.Join(f.site, content)); err != nil || len(names) > 0 {
			return err
		}
	}
	for _, missing := range f.found.Missing {
		if strings.Contains(missing.Said, "contentDir = ") {
			f.refuse(setting{said: missing.Said}, "is not in the commit, so that the site would have no page", fixMissing)
		}
	}
	return nil
}
