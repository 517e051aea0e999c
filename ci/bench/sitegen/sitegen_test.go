package sitegen

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

func generate(t *testing.T, o Options) string {
	t.Helper()
	o.Dir = filepath.Join(t.TempDir(), "site")
	if err := Generate(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return o.Dir
}

// files returns the content of every file below dir by its path relative to dir.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dir, path)
		all[filepath.ToSlash(name)] = string(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// changed returns the sorted names of the files that differ between a and b, or exist in one of them only.
func changed(a, b map[string]string) []string {
	var names []string
	for name := range a {
		if other, ok := b[name]; !ok || other != a[name] {
			names = append(names, name)
		}
	}
	for name := range b {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

type frontMatter struct {
	Title       string
	Date        time.Time
	Description string
	Tags        []string
}

func split(t *testing.T, content string) (frontMatter, string) {
	t.Helper()
	head, text, ok := strings.Cut(strings.TrimPrefix(content, "---\n"), "\n---\n")
	if !ok {
		t.Fatalf("no front matter in %q", content)
	}
	var f frontMatter
	if err := yaml.Unmarshal([]byte(head), &f); err != nil {
		t.Fatalf("front matter %q: %v", head, err)
	}
	return f, text
}

func TestTheSameSeedWritesTheSameBytes(t *testing.T) {
	a := files(t, generate(t, Options{Pages: 60, Seed: 7}))
	b := files(t, generate(t, Options{Pages: 60, Seed: 7}))
	if names := changed(a, b); len(names) > 0 {
		t.Errorf("two sites of one seed differ in %v", names)
	}
}

func TestAnotherSeedWritesOtherPages(t *testing.T) {
	a := files(t, generate(t, Options{Pages: 5, Seed: 7}))
	b := files(t, generate(t, Options{Pages: 5, Seed: 8}))
	if names := changed(a, b); len(names) != 5 {
		t.Errorf("got %d changed files, want the 5 pages: %v", len(names), names)
	}
}

func TestALargerSiteBeginsWithThePagesOfTheSmallerOne(t *testing.T) {
	small := files(t, generate(t, Options{Pages: 20, Seed: 7}))
	large := files(t, generate(t, Options{Pages: 30, Seed: 7}))
	if names := changed(small, large); len(names) != 10 {
		t.Errorf("got %d changed files, want the 10 new pages: %v", len(names), names)
	}
}

func TestPagesLookLikeArticles(t *testing.T) {
	dir := generate(t, Options{Pages: 200, Seed: 1})
	seenSections, seenTags := map[string]bool{}, map[string]bool{}
	shortest, longest := maxWords, 0
	var last time.Time
	for n := 1; n <= 200; n++ {
		path := pagePath(dir, n)
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		head, text := split(t, string(content))
		if head.Title == "" || head.Description == "" {
			t.Errorf("page %d has no title or description: %+v", n, head)
		}
		if !head.Date.After(last) {
			t.Errorf("page %d is dated %s, not after the page before, %s", n, head.Date, last)
		}
		last = head.Date
		if len(head.Tags) < 1 || len(head.Tags) > 4 {
			t.Errorf("page %d has %d tags", n, len(head.Tags))
		}
		for _, tag := range head.Tags {
			seenTags[tag] = true
		}
		seenSections[filepath.Base(filepath.Dir(path))] = true
		words := len(strings.Fields(text))
		shortest, longest = min(shortest, words), max(longest, words)
	}
	// Marks of headings, lists and code count as words here, and the last sentence is not cut.
	if shortest < minWords || shortest > 350 || longest > maxWords+80 || longest < 1100 {
		t.Errorf("pages have %d to %d words, want the range from about %d to about %d", shortest, longest, minWords, maxWords)
	}
	if len(seenSections) != 20 {
		t.Errorf("got %d sections, want 20", len(seenSections))
	}
	if len(seenTags) != len(tags) {
		t.Errorf("got %d of %d tags", len(seenTags), len(tags))
	}
}

func TestEveryLinkLeadsToAPage(t *testing.T) {
	all := files(t, generate(t, Options{Pages: 100, Seed: 3}))
	link := regexp.MustCompile(`\]\(/([^)]+)/\)`)
	links := 0
	for name, content := range all {
		for _, m := range link.FindAllStringSubmatch(content, -1) {
			links++
			if _, ok := all["content/"+m[1]+".md"]; !ok {
				t.Errorf("%s links to /%s/, which does not exist", name, m[1])
			}
		}
	}
	if links == 0 {
		t.Error("no page links to another")
	}
}

func TestTheConfigurationIsYAMLAndNamesTheTheme(t *testing.T) {
	for _, theme := range []string{"", "castle"} {
		var c struct {
			Theme       string
			BuildFuture bool `yaml:"buildFuture"`
		}
		if err := yaml.Unmarshal(config(theme), &c); err != nil {
			t.Fatal(err)
		}
		if c.Theme != theme || !c.BuildFuture {
			t.Errorf("configuration for theme %q reads %+v", theme, c)
		}
	}
}

func TestAThemeIsCopiedIntoTheSite(t *testing.T) {
	theme := filepath.Join(t.TempDir(), "plain")
	if err := writeFile(filepath.Join(theme, "layouts", "_partials", "head.html"), []byte("<title>")); err != nil {
		t.Fatal(err)
	}
	all := files(t, generate(t, Options{Pages: 1, ThemeDir: theme}))
	if got := all["themes/plain/layouts/_partials/head.html"]; got != "<title>" {
		t.Errorf("the theme's partial reads %q", got)
	}
	if !strings.Contains(all["hugo.yaml"], `theme: "plain"`) {
		t.Errorf("hugo.yaml does not name the theme:\n%s", all["hugo.yaml"])
	}
	if _, ok := all["layouts/all.html"]; ok {
		t.Error("a site with a theme has a layout of its own, which would hide the theme's")
	}
}

func TestASiteWithoutAThemeHasALayoutOfItsOwn(t *testing.T) {
	all := files(t, generate(t, Options{Pages: 1}))
	if !strings.Contains(all["layouts/all.html"], "{{ .Content }}") {
		t.Errorf("layouts/all.html reads %q", all["layouts/all.html"])
	}
}

func TestOptionsThatMakeNoSenseAreRefused(t *testing.T) {
	full := t.TempDir()
	if err := writeFile(filepath.Join(full, "precious.txt"), nil); err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		options Options
		want    string
	}{
		"no directory":             {Options{}, "set Dir"},
		"a negative number":        {Options{Dir: filepath.Join(full, "new"), Pages: -1}, "-1 pages"},
		"a directory that is full": {Options{Dir: full, Pages: 1}, full + " is not empty"},
		"a theme that is missing":  {Options{Dir: t.TempDir(), Pages: 1, ThemeDir: filepath.Join(full, "none")}, "copy the theme"},
	} {
		t.Run(name, func(t *testing.T) {
			err := Generate(t.Context(), tc.options)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got error %v, want one with %q", err, tc.want)
			}
		})
	}
	if got := files(t, full); len(got) != 1 {
		t.Errorf("refused options left files behind: %v", got)
	}
}

func TestGenerateStopsWhenItsContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	dir := t.TempDir()
	if err := Generate(ctx, Options{Dir: dir, Pages: 10}); !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v, want context.Canceled", err)
	}
	if _, err := os.Stat(pagePath(dir, 1)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a page was written after the context had ended: %v", err)
	}
}

func TestTouchChangesOneCommaInTheTextOfOnePage(t *testing.T) {
	dir := generate(t, Options{Pages: 25, Seed: 7})
	before := files(t, dir)
	for range 3 {
		if err := Touch(dir, 21); err != nil {
			t.Fatal(err)
		}
		after := files(t, dir)
		name := fmt.Sprintf("content/%s/page-00021.md", section(21))
		if got := changed(before, after); !slices.Equal(got, []string{name}) {
			t.Fatalf("changed files: %v, want %s alone", got, name)
		}
		old, touched := []byte(before[name]), []byte(after[name])
		if len(old) != len(touched) {
			t.Fatalf("the page's length went from %d to %d", len(old), len(touched))
		}
		var at []int
		for i := range old {
			if old[i] != touched[i] {
				at = append(at, i)
			}
		}
		if len(at) != 1 || old[at[0]] != ',' || touched[at[0]] != ';' || at[0] < bytes.Index(old, frontMatterEnd) {
			t.Fatalf("changed bytes at %v, want one comma of the text", at)
		}
		before = after
	}
}

func TestTouchNamesThePageThatIsMissing(t *testing.T) {
	dir := generate(t, Options{Pages: 3})
	err := Touch(dir, 4)
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "page 4") {
		t.Errorf("got error %v, want one that says page 4 does not exist", err)
	}
}

func TestTouchFailsWhenNoCommaIsLeft(t *testing.T) {
	dir := generate(t, Options{Pages: 1})
	if err := writeFile(pagePath(dir, 1), []byte("---\ntitle: \"A, b\"\n---\nNone here.\n")); err != nil {
		t.Fatal(err)
	}
	if err := Touch(dir, 1); err == nil || !strings.Contains(err.Error(), "no comma left") {
		t.Errorf("got error %v, want one that says no comma is left", err)
	}
}
