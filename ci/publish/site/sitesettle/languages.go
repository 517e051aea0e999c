package sitesettle

import (
	"encoding/json"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"tazlab.net/castle/ci/publish/site/hugoconfig"
	"tazlab.net/castle/ci/publish/warning"
)

// language is one of the site's, with what it sets of its own.
type language struct {
	code    string // in lower case
	weight  int    // 0 where it has none
	plurals []string
	titled  func(term string) string // the title that Hugo gives to a term's page
}

// defaultTaxonomies are those of a site that configures none.
var defaultTaxonomies = map[string]any{"category": "categories", "tag": "tags"}

// readLanguages lists the languages in Hugo's order, with what each has of its own.
func (s *site) readLanguages() {
	for _, code := range s.config.Languages() {
		own := s.config.Part("languages").Part(code)
		s.languages = append(s.languages, language{code: code, weight: own.Int("weight")})
	}
	for code := range s.config.Part("languages") {
		if !slices.ContainsFunc(s.languages, func(l language) bool { return l.code == code }) {
			s.switchedOff = append(s.switchedOff, code)
		}
	}
	s.main = s.config.MainLanguage()
	for i := range s.languages {
		l := &s.languages[i]
		l.titled = func(term string) string { return term }
		if s.setting(l.code, "capitalizeListTitles").Bool("capitalizeListTitles", true) {
			l.titled = titleCase(s.setting(l.code, "titleCaseStyle").Text("titleCaseStyle", ""))
		}
		if disabled := s.setting(l.code, "disableKinds").Texts("disableKinds"); !slices.Contains(disabled, "term") {
			l.plurals = plurals(s.setting(l.code, "taxonomies"))
		}
	}
}

// setting is a language's own configuration where it holds the key, else the site's.
func (s *site) setting(code, key string) hugoconfig.Config {
	own := s.config.Part("languages").Part(code)
	if _, set := own[strings.ToLower(key)]; set {
		return own
	}
	return s.config
}

func plurals(config hugoconfig.Config) []string {
	taxonomies := config.Part("taxonomies")
	if _, set := config["taxonomies"]; !set {
		taxonomies = defaultTaxonomies
	}
	var plurals []string
	for singular := range taxonomies {
		if plural := taxonomies.Text(singular, ""); plural != "" {
			plurals = append(plurals, plural)
		}
	}
	slices.Sort(plurals)
	return plurals
}

// weightsFile is read after every other file of the configuration, since those of a folder come by their names.
const weightsFile = "config/production/zz-castle/languages.json"

// weigh gives the languages weights in their order if two have the same.
func (s *site) weigh(files *os.Root, when time.Time) (warnings []warning.Warning, err error) {
	same := map[int][]string{}
	weights := map[string]any{}
	for i, l := range s.languages {
		same[l.weight] = append(same[l.weight], l.code)
		weights[l.code] = map[string]int{"weight": i + 1}
	}
	for weight, codes := range same {
		if len(codes) > 1 {
			what := fmt.Sprintf("the weight %d", weight)
			if weight == 0 {
				what = "no weight"
			}
			text := fmt.Sprintf("languages: %s have %s, and are ordered by name; give each a weight of its own", listed(codes), what)
			warnings = append(warnings, warning.Warning{Text: text})
		}
	}
	if len(warnings) == 0 {
		return nil, nil
	}
	slices.SortFunc(warnings, func(a, b warning.Warning) int { return strings.Compare(a.Text, b.Text) })
	content, err := json.Marshal(weights)
	if err != nil {
		return nil, err
	}
	return warnings, add(files, path.Join(s.folder, weightsFile), content, when)
}

// add writes a file with its folders, which all get the given time.
func add(files *os.Root, name string, content []byte, when time.Time) error {
	if err := files.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	if err := files.WriteFile(name, content, 0o644); err != nil {
		return err
	}
	for ; name != "."; name = path.Dir(name) {
		if err := files.Chtimes(name, when, when); err != nil {
			return err
		}
	}
	return files.Chtimes(".", when, when)
}
