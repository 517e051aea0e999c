package sitesettle

import (
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tazlab.net/castle/ci/publish/site/hugoconfig"
)

// page is a file of content.
type page struct {
	name      string // relative to the site's folder
	key       string // its path in the content
	languages []string
	settings  hugoconfig.Config
}

// pages reads the front matter of all content.
func (s *site) pages() ([]page, error) {
	var pages []page
	for _, r := range s.roots {
		err := fs.WalkDir(s.files, r.dir, func(name string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case name != r.dir && ignored(entry.Name()):
				if entry.IsDir() {
					return fs.SkipDir
				}
				return nil
			case !entry.Type().IsRegular() || !isContent(name):
				return nil
			}
			content, err := fs.ReadFile(s.files, name)
			if err != nil {
				return err
			}
			pages = append(pages, s.page(r, name, frontMatter(content)))
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return pages, nil
}

// ignored reports whether Hugo passes over a file or folder of that name. Source: source/sourceSpec.go of Hugo v0.165.0.
func ignored(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") || strings.HasSuffix(name, "~")
}

func (s *site) page(r root, name string, settings hugoconfig.Config) page {
	within := strings.TrimPrefix(strings.TrimPrefix(name, r.dir), "/")
	base, code := s.splitName(path.Base(within))
	p := page{name: s.shown(name), languages: r.languages, settings: settings}
	if code != "" {
		p.languages = []string{code}
	}
	if globs := settings.Part("sites").Part("matrix").Texts("languages"); len(globs) > 0 {
		p.languages = s.matching(globs)
	}
	if base == "index" || base == "_index" {
		base = ""
	}
	p.key = keyOf(strings.TrimPrefix(path.Join(r.at, path.Dir(within), base), "/"))
	return p
}

// shown is how a file is called from the site's folder.
func (s *site) shown(name string) string {
	relative, err := filepath.Rel(filepath.FromSlash(s.folder), filepath.FromSlash(name))
	if err != nil {
		return name
	}
	return filepath.ToSlash(relative)
}

// splitName takes extension and language off a file's name; the language is empty where there is none.
func (s *site) splitName(name string) (base, code string) {
	base = strings.TrimSuffix(name, path.Ext(name))
	for rest := base; ; {
		code = strings.ToLower(strings.TrimPrefix(path.Ext(rest), "."))
		if code == "" {
			return base, ""
		}
		rest = strings.TrimSuffix(rest, path.Ext(rest))
		if slices.Contains(s.switchedOff, code) || slices.ContainsFunc(s.languages, func(l language) bool { return l.code == code }) {
			return rest, code
		}
	}
}

// term is one page of a taxonomy in one language.
type term struct {
	plural    string
	language  language
	key       string
	spellings map[string][]string // the files that use each of them
}

// terms collects the terms of the pages that are built, but for those that have a page in the content. They come by language
// and key.
func (s *site) terms(now time.Time) ([]term, error) {
	pages, err := s.pages()
	if err != nil {
		return nil, err
	}
	var terms []term
	for _, l := range s.languages {
		mine := slices.DeleteFunc(slices.Clone(pages), func(p page) bool { return !slices.Contains(p.languages, l.code) })
		for _, plural := range l.plurals {
			terms = append(terms, s.termsOf(mine, l, plural, now)...)
		}
	}
	slices.SortFunc(terms, func(a, b term) int {
		return strings.Compare(a.language.code+"\x00"+a.key, b.language.code+"\x00"+b.key)
	})
	return terms, nil
}

// termsOf are the terms of one taxonomy in the pages of one language.
func (s *site) termsOf(pages []page, l language, plural string, now time.Time) []term {
	owned := map[string]bool{}
	for _, p := range pages {
		owned[p.key] = true
	}
	byKey := map[string]term{}
	for _, p := range pages {
		if !s.built(p.settings, now) {
			continue
		}
		for _, spelling := range p.settings.Texts(plural) {
			key := keyOf(plural, spelling)
			if spelling == "" || owned[key] || !isPath(key) {
				continue
			}
			if _, known := byKey[key]; !known {
				byKey[key] = term{plural, l, key, map[string][]string{}}
			}
			if files := byKey[key].spellings[spelling]; !slices.Contains(files, p.name) {
				byKey[key].spellings[spelling] = append(files, p.name)
			}
		}
	}
	return slices.Collect(maps.Values(byKey))
}

// title is the spelling that sorts first.
func (t term) title() string { return slices.Min(slices.Collect(maps.Keys(t.spellings))) }
