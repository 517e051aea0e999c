package sitesettle

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/mod/semver"

	"tazlab.net/castle/ci/publish/warning"
)

// oldest is the version of Hugo from which on terms are settled, the first with content adapters; hugoversion.Oldest is that
// from which on sites are built. Before v0.123.0 the
// front matter's build had another name, and terms other paths. Source: hugolib/page__meta.go of Hugo v0.165.0,
// gohugo.io/content-management/content-adapters.
const oldest = "v0.126.0"

// Settle makes the site in a folder below top, which is a copy, the same in every build; its content may also be
// elsewhere below top. What it writes has the given time. It returns a warning for each thing that was ambiguous, in
// order, with the fix.
func Settle(top, folder, hugo string, when time.Time) (warnings []warning.Warning, err error) {
	files, err := os.OpenRoot(top)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, files.Close()) }()
	s, err := openSite(files.FS(), folder)
	if err != nil {
		return nil, err
	}
	s.settlesTerms = hugo == "" || semver.Compare("v"+hugo, oldest) >= 0
	terms, err := s.terms(time.Now())
	if err != nil {
		return nil, err
	}
	oneAddress := s.sharing(terms)
	var ambiguous []term
	for _, t := range terms {
		if _, hidden := oneAddress[t.id()]; len(t.spellings) > 1 || hidden {
			ambiguous = append(ambiguous, t)
		}
	}
	for _, l := range s.languages {
		if err := s.write(files, l, ambiguous, oneAddress, when); err != nil {
			return nil, err
		}
	}
	unweighted, err := s.weigh(files, when)
	if err != nil {
		return nil, err
	}
	return slices.Concat(unweighted, s.sameTerm(ambiguous), s.sameAddress(terms, oneAddress)), nil
}

// id tells a term from those of other languages.
func (t term) id() string { return t.language.code + t.key }

// sharing finds terms whose page would be written to the file of another term. The term that is written is the one whose title
// sorts first; the others lead to its id. Where terms may have addresses of their own, nothing is known about it.
func (s *site) sharing(terms []term) map[string]term {
	hidden := map[string]term{}
	if s.ownAddresses {
		return hidden
	}
	byAddress := map[string][]term{}
	for _, t := range terms {
		address := t.language.code + s.addressOf(t)
		byAddress[address] = append(byAddress[address], t)
	}
	for _, sharing := range byAddress {
		slices.SortFunc(sharing, func(a, b term) int { return strings.Compare(a.title(), b.title()) })
		for _, t := range sharing[1:] {
			hidden[t.id()] = sharing[0]
		}
	}
	return hidden
}

// write adds the language's term pages to its content. There is nowhere to add them where no folder of the site is the top of the
// content; then the terms stay as they are.
func (s *site) write(files *os.Root, l language, terms []term, hidden map[string]term, when time.Time) error {
	top, infix := s.top(l)
	if top == "" {
		return nil
	}
	var added strings.Builder
	for _, t := range terms {
		if t.language.code != l.code {
			continue
		}
		_, isHidden := hidden[t.id()]
		folder := t.plural + "/" + t.title()
		if !isFolder(folder) {
			fmt.Fprintf(&added, "  {{ $.AddPage %s }}\n", s.asArgument(t, isHidden))
			continue
		}
		content, err := t.asFrontMatter(isHidden)
		if err != nil {
			return err
		}
		if err := add(files, path.Join(top, folder, "_index"+infix+".md"), content, when); err != nil {
			return err
		}
	}
	if added.Len() == 0 {
		return nil
	}
	adapter := path.Join(top, "_content"+infix+".gotmpl")
	present, err := files.ReadFile(adapter)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(present) > 0 {
		present = append(present, '\n')
	}
	text := fmt.Sprintf("%s{{ if eq (lower $.Site.Language.Lang) %q }}\n%s{{ end }}\n", present, l.code, added.String())
	return add(files, adapter, []byte(text), when)
}

// top is the folder at the top of a language's content, and what in a file's name there tells the language. It is empty
// where no terms can be settled.
func (s *site) top(l language) (dir, infix string) {
	if !s.settlesTerms {
		return "", ""
	}
	for _, r := range s.roots {
		switch {
		case r.foreign || r.at != "":
		case len(r.languages) == 1 && r.languages[0] == l.code:
			return r.dir, ""
		case dir == "":
			dir, infix = r.dir, "."+l.code
		}
	}
	return dir, infix
}

// isFolder reports whether Hugo finds what is in a folder of that path below the content.
func isFolder(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if ignored(part) || len(part) > 255 || strings.ContainsRune(part, 0) {
			return false
		}
	}
	return true
}

// asFrontMatter is the term page's file. A hidden term keeps its address, and nothing is written there.
func (t term) asFrontMatter(hidden bool) ([]byte, error) {
	settings := map[string]any{"title": t.language.titled(t.title())}
	if hidden {
		settings["build"] = map[string]string{"render": "link"}
	}
	content, err := json.Marshal(settings)
	return append(content, '\n'), err
}

// asArgument is the same as the argument of AddPage, in Hugo's template language. Such a page gets no default of what Hugo
// decides by several settings at once.
func (s *site) asArgument(t term, hidden bool) string {
	render := "always"
	if hidden {
		render = "link"
	}
	sitemap := s.setting(t.language.code, "sitemap").Part("sitemap")
	priority := "-1.0"
	if sitemap["priority"] != nil {
		priority = fmt.Sprintf("%q", fmt.Sprint(sitemap["priority"]))
	}
	return fmt.Sprintf(`(dict "kind" "term" "path" %q "title" %q "build" (dict "list" "always" "publishResources" true "render" %q) `+
		`"sitemap" (dict "priority" %s "changefreq" %q "disable" %t))`,
		t.plural+"/"+t.title(), t.language.titled(t.title()), render, priority, sitemap.Text("changefreq", ""), sitemap.Bool("disable", false))
}

// sameTerm words the terms with several spellings, those of all languages together.
func (s *site) sameTerm(terms []term) []warning.Warning {
	type merged struct {
		spellings map[string][]string
		titles    []string
	}
	byKey := map[string]*merged{}
	for _, t := range terms {
		if len(t.spellings) == 1 {
			continue
		}
		m := byKey[t.key]
		if m == nil {
			m = &merged{spellings: map[string][]string{}}
			byKey[t.key] = m
		}
		for spelling, files := range t.spellings {
			m.spellings[spelling] = append(m.spellings[spelling], files...)
		}
		if top, _ := s.top(t.language); top != "" {
			m.titles = append(m.titles, t.title())
		}
	}
	var warnings []warning.Warning
	for _, key := range slices.Sorted(maps.Keys(byKey)) {
		m := byKey[key]
		var spelled []string
		for _, spelling := range slices.Sorted(maps.Keys(m.spellings)) {
			spelled = append(spelled, fmt.Sprintf("%q (%s)", spelling, examples(m.spellings[spelling])))
		}
		plural := taxonomyOf(terms, key)
		kind := fmt.Sprintf("terms of %s have several spellings, and a page is titled after any of them, another one in each build: write each alike", plural)
		titled := "any of them, another one in each build" // since there was nowhere to settle it
		if len(m.titles) > 0 {
			kind = fmt.Sprintf("terms of %s have several spellings, and a page is titled after the one that sorts first: write each alike", plural)
			slices.Sort(m.titles)
			titled = listed(quoted(slices.Compact(m.titles)))
		}
		warnings = append(warnings, warning.Warning{
			Text: fmt.Sprintf("%s: %s are one term, and its page is titled after %s; write them alike", plural, listed(spelled), titled),
			Kind: kind, Example: listed(spelled),
		})
	}
	return warnings
}

func taxonomyOf(terms []term, key string) string {
	return terms[slices.IndexFunc(terms, func(t term) bool { return t.key == key })].plural
}

// sameAddress words the terms whose page another one takes the place of, those of all languages together.
func (s *site) sameAddress(terms []term, hidden map[string]term) []warning.Warning {
	files := map[string][]string{}
	for _, t := range terms {
		files[t.key] = append(files[t.key], t.files()...)
	}
	said := map[string]bool{}
	var warnings []warning.Warning
	for _, t := range terms {
		shown, isHidden := hidden[t.id()]
		if !isHidden || said[t.key] {
			continue
		}
		said[t.key] = true
		page := "either of them, another one in each build"
		if top, _ := s.top(t.language); top != "" {
			page = strconv.Quote(shown.title())
		}
		both := fmt.Sprintf("%q (%s) and %q (%s)", shown.title(), examples(files[shown.key]), t.title(), examples(files[t.key]))
		warnings = append(warnings, warning.Warning{
			Text:    fmt.Sprintf("%s: %s are two terms with one address, and the page there is that of %s; write them alike", t.plural, both, page),
			Kind:    fmt.Sprintf("terms of %s have the address of another term, and one of the two has no page: write them alike", t.plural),
			Example: both,
		})
	}
	slices.SortFunc(warnings, func(a, b warning.Warning) int { return strings.Compare(a.Text, b.Text) })
	return warnings
}

func (t term) files() []string {
	return slices.Concat(slices.Collect(maps.Values(t.spellings))...)
}

// examples names the first of some files.
func examples(files []string) string {
	files = slices.Compact(slices.Sorted(slices.Values(files)))
	if more := len(files) - 1; more > 0 {
		return fmt.Sprintf("%s and %d more", files[0], more)
	}
	return files[0]
}

func quoted(texts []string) []string {
	for i, text := range texts {
		texts[i] = strconv.Quote(text)
	}
	return texts
}

// listed joins texts as a sentence does.
func listed(texts []string) string {
	last := len(texts) - 1
	if last == 0 {
		return texts[0]
	}
	return strings.Join(texts[:last], ", ") + " and " + texts[last]
}
