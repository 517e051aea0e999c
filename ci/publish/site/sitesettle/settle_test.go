package sitesettle

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tazlab.net/castle/ci/base/filetest"
	"tazlab.net/castle/ci/publish/site/hugoversion"
	"tazlab.net/castle/ci/publish/warning"
	"tazlab.net/castle/ci/setup/gotool"
	"tazlab.net/castle/ci/test/needs"
	"tazlab.net/castle/ci/test/tell"
)

var when = time.Date(2024, 5, 6, 7, 8, 9, 0, time.UTC)

// layout shows everything of a term page that could differ, and what else a page says of terms.
const layout = `{{ .Kind }}|{{ .Title }}|{{ .Data.Term }}|{{ .Name }}|{{ .Date }}|{{ .RelPermalink }}
{{ range .Pages }}{{ .RelPermalink }} {{ .LinkTitle }}
{{ end }}{{ range .GetTerms "tags" }}{{ .LinkTitle }} {{ .RelPermalink }}
{{ end }}{{ range .Site.Taxonomies.tags.ByCount }}{{ .Page.Title }} {{ .Count }}
{{ end }}`

// site is a folder with a Hugo site.
type testSite struct {
	t    *testing.T
	dir  string
	hugo string // the program; empty: castle's own
}

func newSite(t *testing.T, files map[string]string) testSite {
	t.Helper()
	s := testSite{t: t, dir: t.TempDir()}
	s.write("layouts/all.html", layout)
	s.write("hugo.yaml", "title: Blog\n")
	for name, content := range files {
		s.write(name, content)
	}
	return s
}

func (s testSite) write(name, content string) {
	s.t.Helper()
	filetest.Write(s.t, filepath.Join(s.dir, filepath.FromSlash(name)), content)
}

func (s testSite) settle() []string {
	s.t.Helper()
	warnings, err := Settle(filepath.Dir(s.dir), filepath.Base(s.dir), "0.165.0", when)
	if err != nil {
		s.t.Fatal(err)
	}
	return warning.Texts(warnings)
}

// settled expects these warnings.
func (s testSite) settled(want ...string) {
	s.t.Helper()
	if got := s.settle(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		s.t.Fatalf("warnings\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// build builds the site with no cache and returns what it made.
func (s testSite) build(settings ...string) string {
	s.t.Helper()
	hugo := s.hugo
	if hugo == "" {
		hugo = needs.Programs(s.t, "hugo")["hugo"]
	}
	made := s.t.TempDir()
	command := exec.CommandContext(s.t.Context(), hugo, "--quiet", "--noBuildLock", "--source", s.dir, "--destination", made)
	command.Env = append(append(os.Environ(), "TZ=UTC", "HUGO_CACHEDIR="+s.t.TempDir(), "HUGO_RESOURCEDIR="+s.t.TempDir()), settings...)
	if out, err := command.CombinedOutput(); err != nil || len(out) > 0 {
		s.t.Fatalf("%v\n%s", err, out)
	}
	return made
}

// digest is one text for all files of a folder and their content.
func digest(t *testing.T, dir string) string {
	t.Helper()
	sum := sha256.New()
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(os.DirFS(dir), name)
		fmt.Fprintf(sum, "%s %d\n%s", name, len(content), content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// equal reports whether builds give one result, on one processor and on several. It looks no further than the first that differs.
func (s testSite) equal(builds int) bool {
	s.t.Helper()
	first := digest(s.t, s.build("GOMAXPROCS=1"))
	for i := range builds - 1 {
		if digest(s.t, s.build(fmt.Sprintf("GOMAXPROCS=%d", 1+i%4))) != first {
			return false
		}
	}
	return true
}

// burden keeps two processors busy until the test ends.
func burden(t *testing.T) {
	var done atomic.Bool
	t.Cleanup(func() { done.Store(true) })
	for range 2 {
		go func() {
			for !done.Load() {
			}
		}()
	}
}

// spellings are of one term each, in two ways to write it.
var spellings = [][2]string{
	{"AI", "ai"}, {"context management", "context-management"}, {".NET", ".net"}, {"C/C++", "c/c++"}, {"Größe", "größe"},
	{"What!", "what!"}, {"CI / CD", "ci / cd"}, {`a "b" \ {{ c }}`, `A "b" \ {{ c }}`},
}

func ambiguousSite(t *testing.T, config string, name func(page int, language string) string) testSite {
	t.Helper()
	s := newSite(t, map[string]string{"hugo.yaml": config})
	for i := range 2 * len(spellings) {
		tags := fmt.Sprintf("[%q, plain, 'what!']", spellings[i%len(spellings)][i/len(spellings)%2])
		front := fmt.Sprintf("title: Page %d\ndate: 2024-01-%02d\ntags: %s\n", i, 1+i%28, tags)
		s.write(name(i, "en"), "---\n"+front+"---\ntext\n")
		s.write(name(i, "de"), "---\n"+front+"---\nText\n")
	}
	return s
}

func TestASettledSiteIsTheSameInEachBuild(t *testing.T) {
	byName := func(i int, language string) string {
		if language == "en" {
			return fmt.Sprintf("content/posts/p%d.md", i)
		}
		return fmt.Sprintf("content/posts/p%d.de.md", i)
	}
	byFolder := func(i int, language string) string { return fmt.Sprintf("text/%s/posts/p%d/index.md", language, i) }
	const languages = "languages: {en: {weight: 1}, de: {weight: 2}}\n"
	for name, s := range map[string]testSite{
		"languages by name":   ambiguousSite(t, languages, byName),
		"languages by folder": ambiguousSite(t, "languages: {en: {contentDir: text/en}, de: {contentDir: text/de}}\n", byFolder),
		"languages by mount": ambiguousSite(t, "languages: {en: {weight: 2}, de: {weight: 2}}\nmodule: {mounts: [{source: text/en, target: content}, "+
			"{source: text/de, target: content, sites: {matrix: {languages: [de]}}}]}\n", byFolder),
		"case in addresses":      ambiguousSite(t, languages+"disablePathToLower: true\n", byName),
		"no accents":             ambiguousSite(t, languages+"removePathAccents: true\n", byName),
		"addresses of one's own": ambiguousSite(t, languages+"permalinks: {term: {tags: '/about/:slug/'}}\n", byName),
	} {
		t.Run(name, func(t *testing.T) {
			tell.Fault(t, "tags spelt in several ways; %s", name)
			s.t = t
			s.equalOnlyWhenSettled(4)
		})
	}
	t.Run("on a busy machine", func(t *testing.T) {
		burden(t)
		ambiguousSite(t, languages, byName).equalOnlyWhenSettled(10)
	})
}

// equalOnlyWhenSettled compares builds of the site as it is and as it is settled.
func (s testSite) equalOnlyWhenSettled(builds int) {
	s.t.Helper()
	if s.equal(builds) {
		s.t.Logf("NOT SHOWN: %d builds of the unsettled site are equal, so that equal builds of the settled one prove nothing", builds)
	}
	if len(s.settle()) == 0 {
		s.t.Fatal("nothing was ambiguous")
	}
	if !s.equal(builds) {
		s.t.Fatalf("%d builds of the settled site are not equal", builds)
	}
}

func TestATermIsFoundInEveryFormat(t *testing.T) {
	s := newSite(t, map[string]string{
		"content/a.md":   "---\nTags: [ONE]\n---\n",
		"content/b.md":   "+++\ntags = ['One']\n+++\n",
		"content/c.html": "{\"tags\": \"oNE\"}\n",
		"content/d.org":  "#+title: D\n#+tags[]: one two\n",
		"content/e.md":   "\uFEFF---\r\nparams:\r\n  tags: [onE]\r\n---\r\n",
		"content/f.md":   "---\n---\ntags: [nothing]\n",
		"content/g.md":   "---\ntags: [: not YAML\n---\n",
		"content/h.txt":  "---\ntags: [ONe]\n---\n",
	})
	s.settled(`tags: "ONE" (content/a.md), "One" (content/b.md), "oNE" (content/c.html), "onE" (content/e.md) and "one" (content/d.org) ` +
		`are one term, and its page is titled after "ONE"; write them alike`)
}

func TestOnlyPagesThatAreBuiltHaveTerms(t *testing.T) {
	s := newSite(t, map[string]string{
		"content/a.md":           "---\ntags: [One]\n---\n",
		"content/draft.md":       "---\ntags: [one]\ndraft: true\n---\n",
		"content/unpublished.md": "---\ntags: [one]\npublished: false\n---\n",
		"content/future.md":      "---\ntags: [one]\ndate: 2999-01-02\n---\n",
		"content/expired.md":     "---\ntags: [one]\nexpiryDate: '2001-02-03T04:05:06Z'\n---\n",
		"content/hidden.md":      "---\ntags: [one]\nbuild: {render: never}\n---\n",
		"content/head/index.md":  "---\ntags: [one]\nheadless: true\n---\n",
		"content/.draft.md":      "---\ntags: [one]\n---\n",
		"content/x.fr.md":        "---\ntags: [one]\n---\n",
		"hugo.yaml":              "languages: {en: {}, fr: {disabled: true}}\n",
	})
	before := digest(t, s.dir)
	s.settled()
	if digest(t, s.dir) != before {
		t.Fatal("a site in order was changed")
	}
}

func TestATermWithAPageIsLeftToIt(t *testing.T) {
	s := newSite(t, map[string]string{
		"hugo.yaml":                      "languages: {en: {weight: 1}, de: {weight: 2}}\n",
		"content/a.md":                   "---\ntags: [One]\n---\n",
		"content/b.md":                   "---\ntags: [one]\n---\n",
		"content/a.de.md":                "---\ntags: [One]\n---\n",
		"content/b.de.md":                "---\ntags: [one]\n---\n",
		"content/tags/one/_index.md":     "---\ntitle: The first\n---\n",
		"content/tags/two/two/_index.md": "---\ntitle: Another\n---\n",
	})
	s.settled(`tags: "One" (content/a.de.md) and "one" (content/b.de.md) are one term, and its page is titled after "One"; write them alike`)
}

func TestTaxonomiesAreThoseOfTheConfiguration(t *testing.T) {
	front := func(one string) string {
		return "---\ntags: [" + one + "]\nBlog/Topics: [" + one + "]\nThemen: [" + one + "]\n---\n"
	}
	s := newSite(t, map[string]string{
		"hugo.yaml":                         "taxonomies: {topic: blog/topics}\n",
		"config/_default/languages.toml":    "[en]\nweight = 1\n",
		"config/_default/languages.de.yaml": "weight: 2\ntaxonomies: {thema: Themen}\n",
		"content/a.md":                      front("One"),
		"content/b.md":                      front("one"),
		"content/a.de.md":                   front("Eins"),
		"content/b.de.md":                   front("eins"),
	})
	s.settled(`blog/topics: "One" (content/a.md) and "one" (content/b.md) are one term, and its page is titled after "One"; write them alike`,
		`Themen: "Eins" (content/a.de.md) and "eins" (content/b.de.md) are one term, and its page is titled after "Eins"; write them alike`)
	for file, title := range map[string]string{"blog/topics/one": "term|One|one|", "de/themen/eins": "term|Eins|eins|"} {
		page, err := os.ReadFile(filepath.Join(s.build(), file, "index.html"))
		if err != nil || !strings.HasPrefix(string(page), title) {
			t.Errorf("%s: %s, %v", file, page, err)
		}
	}
}

func TestASettledTermReadsAsOneThatHugoMakes(t *testing.T) {
	for _, config := range []string{
		"", "capitalizeListTitles: false\n", "titleCaseStyle: Go\n", "titleCaseStyle: chicago\n", "titleCaseStyle: firstUpper\n",
		"titleCaseStyle: none\n", "sitemap: {priority: 0.5, changefreq: daily}\n", "cascade: {own: of a cascade}\n",
	} {
		for _, spellings := range [][2]string{{"the state of the art", "the-state-of-the-art"}, {".NET of the day", ".NET-of-the-day"}} {
			files := map[string]string{
				"hugo.yaml":        config,
				"layouts/all.html": layout + "{{ .Params.own }}",
				"content/a.md":     "---\ndate: 2024-01-02\ntags: ['" + spellings[0] + "', plain]\n---\n",
				"content/b.md":     "---\ndate: 2024-01-03\ntags: ['" + spellings[0] + "']\n---\n",
			}
			if spellings[0][0] == '.' { // by a content adapter, see the package's comment
				files["layouts/all.html"] = strings.ReplaceAll(layout, "{{ .Name }}", "")
			}
			want := newSite(t, files).build()
			files["content/a.md"] = "---\ndate: 2024-01-02\ntags: ['" + spellings[1] + "', plain]\n---\n"
			s := newSite(t, files)
			s.settle()
			if got := s.build(); digest(t, got) != digest(t, want) {
				t.Errorf("with %q the site with %q differs from the one that has it once: %s", config, spellings, s.differing(got, want))
			}
		}
	}
}

// differing names the files that differ.
func (s testSite) differing(a, b string) string {
	out, _ := exec.Command("diff", "-r", a, b).CombinedOutput()
	return string(out)
}

func TestTheSitesOwnContentAdapterStays(t *testing.T) {
	s := newSite(t, map[string]string{
		"content/a.md":            "---\ntags: [.One]\n---\n",
		"content/b.md":            "---\ntags: [.one]\n---\n",
		"content/_content.gotmpl": `{{ $.AddPage (dict "path" "added" "title" "Added") }}`,
	})
	s.settle()
	made := s.build()
	for _, name := range []string{"added/index.html", "tags/.one/index.html"} {
		if _, err := os.Stat(filepath.Join(made, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestATermThatCannotBeSettledIsNamed(t *testing.T) {
	s := newSite(t, map[string]string{
		"hugo.yaml": "module: {mounts: [{source: text, target: content/posts}]}\n",
		"text/a.md": "---\ntags: [One]\n---\n",
		"text/b.md": "---\ntags: [one]\n---\n",
	})
	s.settled(`tags: "One" (text/a.md) and "one" (text/b.md) are one term, and its page is titled after any of them, another one in each build; write them alike`)
}

func TestTermsWithOneAddressAreNamed(t *testing.T) {
	s := newSite(t, map[string]string{
		"hugo.yaml":       "languages: {en: {weight: 1}, de: {weight: 2}}\n",
		"content/a.md":    "---\ntags: [What!, C++, C#]\n---\n",
		"content/b.md":    "---\ntags: [what, 'a - b', a b]\n---\n",
		"content/b.de.md": "---\ntags: [what, What!]\n---\n",
	})
	s.settled(`tags: "What!" (content/a.md and 1 more) and "what" (content/b.de.md and 1 more) are two terms with one address, and the page there is that of "What!"; write them alike`)
	page, err := os.ReadFile(filepath.Join(s.build(), "tags/what/index.html"))
	if err != nil || !strings.HasPrefix(string(page), "term|What!|What!|") {
		t.Fatalf("%s, %v", page, err)
	}
}

func TestWhatIsWrittenHasTheGivenTime(t *testing.T) {
	s := newSite(t, map[string]string{
		"hugo.yaml":       "languages: {en: {}, de: {}, fr: {weight: 3}}\n",
		"content/a.md":    "---\ntags: [One]\n---\n",
		"content/b.md":    "---\ntags: [one]\n---\n",
		"content/c.fr.md": "---\ntags: [one]\n---\n",
	})
	s.settled("languages: de and en have no weight, and are ordered by name; give each a weight of its own",
		`tags: "One" (content/a.md) and "one" (content/b.md) are one term, and its page is titled after "One"; write them alike`)
	for _, name := range []string{".", "content", "content/tags/One/_index.md", "config", "config/production", weightsFile} {
		if info, err := os.Stat(filepath.Join(s.dir, name)); err != nil || !info.ModTime().Equal(when) {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if weights, err := os.ReadFile(filepath.Join(s.dir, weightsFile)); err != nil || string(weights) != `{"de":{"weight":2},"en":{"weight":3},"fr":{"weight":1}}` {
		t.Errorf("%s, %v", weights, err)
	}
}

func TestTermsOfContentOutsideTheSiteAreSettled(t *testing.T) {
	top := newSite(t, map[string]string{
		"website/hugo.yaml": "contentDir: ../docs\n", "website/layouts/all.html": layout,
		"docs/a.md": "---\ntitle: A\ntags: [AI]\n---\n", "docs/b.md": "---\ntitle: B\ntags: [ai]\n---\n",
	})
	warnings, err := Settle(top.dir, "website", "0.165.0", when)
	if want := `tags: "AI" (../docs/a.md) and "ai" (../docs/b.md) are one term`; err != nil || len(warnings) != 1 || !strings.HasPrefix(warnings[0].Text, want) {
		t.Fatalf("%q, %v", warnings, err)
	}
	if _, err := os.Stat(filepath.Join(top.dir, "docs/tags/AI/_index.md")); err != nil {
		t.Error(err)
	}
}

func TestTermsOfOneKindAreFoldedInTheReport(t *testing.T) {
	s := newSite(t, map[string]string{
		"content/a.md": "---\ntags: [AI, Go, Rust, What!, Why!, Who!]\n---\n", "content/b.md": "---\ntags: [ai, go, rust, what, why, who]\n---\n",
	})
	warnings, err := Settle(filepath.Dir(s.dir), filepath.Base(s.dir), "0.165.0", when)
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(warning.Lines(warnings, "CALL"), "\n")
	want := `3 terms of tags have several spellings, and a page is titled after the one that sorts first: write each alike. ` +
		`Examples: "AI" (a.md) and "ai" (b.md); "Go" (a.md) and "go" (b.md). All: CALL
3 terms of tags have the address of another term, and one of the two has no page: write them alike. ` +
		`Examples: "What!" (a.md) and "what" (b.md); "Who!" (a.md) and "who" (b.md). All: CALL`
	if want = strings.NewReplacer("a.md", "content/a.md", "b.md", "content/b.md").Replace(want); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTermsAreLeftToAHugoThatDoesNotKnowWhatTheyAreSettledWith(t *testing.T) {
	for version, settled := range map[string]bool{"0.111.3": false, "0.125.7": false, "0.126.0": true} {
		s := newSite(t, map[string]string{
			"content/a.md": "---\ntags: [AI, .NET, What!]\n---\n", "content/b.md": "---\ntags: [ai, .net, what]\n---\n",
		})
		warnings, err := Settle(filepath.Dir(s.dir), filepath.Base(s.dir), version, when)
		if err != nil || len(warnings) != 3 {
			t.Fatalf("%s: %q, %v", version, warnings, err)
		}
		for _, text := range warning.Texts(warnings) {
			if strings.Contains(text, "another one in each build") == settled {
				t.Errorf("%s: %s", version, text)
			}
		}
		for _, name := range []string{"content/_content.gotmpl", "content/tags"} {
			if _, err := os.Stat(filepath.Join(s.dir, name)); (err == nil) != settled {
				t.Errorf("%s: %s: %v", version, name, err)
			}
		}
	}
}

// "make test-hugo HUGO=0.110.0" builds the oldest Hugo, which no other test needs.
func TestTheOldestHugoBuildsASiteThatWasSettledForIt(t *testing.T) {
	old, err := needs.Find(gotool.At("hugo", "v"+hugoversion.Oldest))
	if err != nil {
		t.Skipf("NOT RUN: %v", err)
	}
	s := newSite(t, map[string]string{
		"config.yaml":                  "languages: {en: {}, de: {}}\ndefaultContentLanguage: en\n",
		"layouts/index.html":           "home in {{ range .Site.Home.AllTranslations }}{{ .Lang }} {{ end }}",
		"layouts/_default/list.html":   layout,
		"layouts/_default/single.html": layout,
		"content/a.md":                 "---\ntags: [AI, .NET, What!]\n---\n",
		"content/b.md":                 "---\ntags: [ai, .net, what]\n---\n",
	})
	if err := os.Remove(filepath.Join(s.dir, "hugo.yaml")); err != nil {
		t.Fatal(err)
	}
	s.hugo = old[gotool.At("hugo", "v"+hugoversion.Oldest)].Programs["hugo"]
	warnings, err := Settle(filepath.Dir(s.dir), filepath.Base(s.dir), hugoversion.Oldest, when)
	if err != nil || len(warnings) != 4 {
		t.Fatalf("%q, %v", warnings, err)
	}
	made := s.build()
	for name, want := range map[string]string{"index.html": "home in de en", "tags/ai/index.html": "term|", "tags/.net/index.html": "term|", "tags/what/index.html": "term|"} {
		if page, err := os.ReadFile(filepath.Join(made, name)); err != nil || !strings.HasPrefix(string(page), want) {
			t.Errorf("%s: %s, %v", name, page, err)
		}
	}
	if _, err := os.Stat(filepath.Join(made, "_content.gotmpl")); err == nil {
		t.Error("what castle settles with is published")
	}
}
