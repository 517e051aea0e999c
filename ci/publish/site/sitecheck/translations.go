package sitecheck

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"tazlab.net/castle/ci/publish/site/sitecheck/rules"
)

// alternate is a page's link to itself in another language.
type alternate struct {
	language string // lower-cased
	file     string // empty where the link leads nowhere, which is a finding of its own
	line     int
}

// pager is the folder of a list's second and later parts; their translations are those of the list itself.
var pager = regexp.MustCompile(`(^|/)page/\d+/index\.html$`)

// checkTranslations reports pages that lack a counterpart in one of the languages. A page that names its translations is
// taken at its word, and they must name it back; for another one the counterpart is sought at the same path under the
// language's folder.
func checkTranslations(site *site, checked []*document, documents map[string]*document, languages []string) {
	wanted := make([]string, 0, len(languages))
	for _, language := range languages {
		wanted = append(wanted, strings.ToLower(language))
	}
	if len(wanted) == 0 {
		wanted = namedLanguages(checked)
	}
	if len(wanted) < 2 {
		return
	}
	for _, document := range checked {
		if !document.isPage || document.redirects || path.Base(document.file) == "404.html" {
			continue
		}
		if len(document.alternates) > 0 {
			document.checkAlternates(documents, wanted)
		} else {
			document.checkCounterparts(site, documents, wanted)
		}
	}
}

// namedLanguages are those that any page names as its own or another's.
func namedLanguages(checked []*document) []string {
	var named []string
	for _, document := range checked {
		for _, link := range document.alternates {
			if !slices.Contains(named, link.language) {
				named = append(named, link.language)
			}
		}
	}
	slices.Sort(named)
	return named
}

func (d *document) checkAlternates(documents map[string]*document, wanted []string) {
	for _, language := range wanted {
		found := speaks(d.language, language) || slices.ContainsFunc(d.alternates, func(a alternate) bool {
			return speaks(a.language, language)
		})
		if !found {
			d.add(1, rules.Translation, "into "+language, "no translation into %q is named: translate the page, or link it with <link rel=alternate hreflang=%s>",
				language, language)
		}
	}
	canonical := pager.ReplaceAllString(d.file, "${1}index.html")
	for _, link := range d.alternates {
		target := documents[link.file]
		if target == nil || target.file == d.file || target.redirects {
			continue
		}
		back := slices.ContainsFunc(target.alternates, func(a alternate) bool { return a.file == d.file || a.file == canonical })
		if !back {
			d.add(link.line, rules.Translation, "into "+link.language+", not named back", "%s is named as the translation into %q, but does not name this page back: link both ways",
				link.file, link.language)
		}
		if target.language != "" && !speaks(target.language, link.language) && !speaks(link.language, target.language) {
			d.add(link.line, rules.TranslationLang, "into "+link.language+", declares "+target.language, "%s is named as the translation into %q, but declares the language %q: correct one of them",
				link.file, link.language, target.language)
		}
	}
}

// checkCounterparts looks for the page under the folders of the other languages. The default language may stand at the top,
// without a folder of its own.
func (d *document) checkCounterparts(site *site, documents map[string]*document, wanted []string) {
	own := strings.ToLower(d.language)
	rest := d.file
	if first, after, ok := strings.Cut(d.file, "/"); ok && slices.Contains(wanted, strings.ToLower(first)) {
		own, rest = strings.ToLower(first), after
	}
	inFolder := rest != d.file
	for _, language := range wanted {
		if speaks(own, language) {
			continue
		}
		_, exists := site.anyCase[language+"/"+strings.ToLower(rest)]
		if top := documents[rest]; inFolder && top != nil {
			exists = exists || speaks(top.language, language)
		}
		if !exists {
			d.add(1, rules.Translation, "into "+language, "no counterpart in %q at %s: translate the page, or name its translation with <link rel=alternate hreflang=%s>",
				language, language+"/"+rest, language)
		}
	}
}

// speaks reports whether a language tag is the given language or a regional form of it, as en-GB is of en.
func speaks(tag, language string) bool {
	tag = strings.ToLower(tag)
	return tag == language || strings.HasPrefix(tag, language+"-")
}
