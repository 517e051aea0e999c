package sitecheck

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/filetest"
	"tazlab.net/castle/ci/publish/site/sitecheck/rules"

	"github.com/rogpeppe/go-internal/txtar"

	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/publish/site/builtsite"
	"tazlab.net/castle/ci/publish/site/sitetest"
)

// TestGoldenSites checks every site of testdata.
func TestGoldenSites(t *testing.T) {
	sitetest.Golden(t, "*.txtar", func(t *testing.T, comment, dir string) string {
		options := goldenOptions(comment)
		options.Dir = dir
		report, err := Check(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		return everyFinding(report)
	})
}

// everyFinding is a report that groups nothing: each finding with its severity, its rule and, after a colon, its cause.
func everyFinding(report Report) string {
	var text strings.Builder
	for _, f := range report.Findings {
		fmt.Fprintf(&text, "%s:%d: %s: %s [%s: %s]\n", f.File, f.Line, f.Severity, f.Message, f.Rule, f.Cause)
	}
	fmt.Fprintln(&text, report.Summary(report.checked()))
	return text.String()
}

// goldenOptions reads what the comment of a golden site says below its sentence: lines "base: URL" and "languages: a b".
func goldenOptions(comment string) Options {
	options := Options{BaseURL: "https://example.org/"}
	for line := range strings.Lines(comment) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "base":
			options.BaseURL = value
		case "languages":
			options.Languages = strings.Fields(value)
		}
	}
	return options
}

func TestEveryRuleHasASeverityAndAGoldenSite(t *testing.T) {
	source, err := parser.ParseFile(token.NewFileSet(), "rules/rules.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var named []string
	ast.Inspect(source, func(node ast.Node) bool {
		spec, ok := node.(*ast.ValueSpec)
		if !ok || spec.Type != nil {
			return true
		}
		value, ok := spec.Values[0].(*ast.BasicLit)
		if !ok {
			return true
		}
		rule, err := strconv.Unquote(value.Value)
		if err != nil {
			t.Fatal(err)
		}
		named = append(named, rule)
		archive, err := txtar.ParseFile(filepath.Join("testdata", rule+".txtar"))
		if err != nil {
			t.Errorf("rule %s has no golden site: %v", rule, err)
			return true
		}
		if want := archive.Files[len(archive.Files)-1]; !strings.Contains(string(want.Data), "["+rule+":") {
			t.Errorf("the golden site of rule %s does not break it", rule)
		}
		return true
	})
	slices.Sort(named)
	if len(named) == 0 || !slices.Equal(named, rules.Names()) {
		t.Fatalf("rules\n%q\nthose with a severity\n%q", named, rules.Names())
	}
}

const goodPage = "<!doctype html><html lang=en><meta charset=utf-8><title>Page</title>"

func TestTheReportIsReadByProgramsToo(t *testing.T) {
	dir := filetest.New(t, map[string]string{"index.html": goodPage + `<a href="/missing/">x</a><h1>a</h1><h3>b</h3>`})
	report, err := Check(t.Context(), Options{Dir: dir, BaseURL: "https://example.org/"})
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := rendering.As("json", report)
	if err != nil {
		t.Fatal(err)
	}
	var decoded Report
	if err := json.Unmarshal([]byte(encoded), &decoded); err != nil {
		t.Fatal(err)
	}
	if decoded.Pages != 1 || decoded.Links != 1 || !slices.Equal(decoded.Findings, report.Findings) || len(decoded.Findings) != 2 {
		t.Fatalf("decoded %+v", decoded)
	}
	if decoded.Errors != 1 || decoded.Warnings != 1 || len(decoded.Groups) != 2 {
		t.Fatalf("decoded %+v; the link is an error, the heading a warning", decoded)
	}
}

func TestAReportWithoutFindingsHasEmptyListsForPrograms(t *testing.T) {
	dir := filetest.New(t, map[string]string{"index.html": goodPage})
	report, err := Check(t.Context(), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := rendering.As("json", report)
	if err != nil || !strings.Contains(encoded, `"findings": []`) || !strings.Contains(encoded, `"groups": []`) {
		t.Fatalf("%s, %v", encoded, err)
	}
}

func TestWithoutABaseURLTheHomePageTellsTheSitesAddress(t *testing.T) {
	dir := filetest.New(t, map[string]string{
		"index.html": goodPage + `<link rel=canonical href=https://own.example/><a href="https://own.example/missing/">x</a>` +
			`<img src="https://own.example/missing.png" alt=""><img src="https://other.example/a.png" alt="">`,
	})
	report, err := Check(t.Context(), Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	text := report.Text()
	if !strings.Contains(text, "own.example/missing/") || !strings.Contains(text, "own.example/missing.png\"> leads to nothing") ||
		!strings.Contains(text, "ask other.example") || len(report.Findings) != 3 {
		t.Fatal(text)
	}
}

func TestWhatCannotBeCheckedIsAnErrorThatNamesIt(t *testing.T) {
	good := filetest.New(t, map[string]string{"index.html": goodPage})
	for _, test := range []struct {
		name    string
		options Options
		want    string
	}{
		{"a folder that does not exist", Options{Dir: filepath.Join(good, "missing")}, "missing"},
		{"a file instead of a folder", Options{Dir: filepath.Join(good, "index.html")}, "is not a folder"},
		{"an empty folder", Options{Dir: t.TempDir()}, "build the site first"},
		{"a base URL without a host", Options{Dir: good, BaseURL: "/blog/"}, "want a full address"},
	} {
		t.Run(test.name, func(t *testing.T) {
			if _, err := Check(t.Context(), test.options); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Fatalf("error = %v; want one with %q", err, test.want)
			}
		})
	}
}

// FuzzPage asks only that no page makes the checker panic or loop.
func FuzzPage(f *testing.F) {
	for _, file := range sitetest.Files(f, "*.txtar") {
		f.Add(file.Data)
	}
	s := &site{Site: &builtsite.Site{Base: builtsite.UnknownSite}}
	f.Fuzz(func(t *testing.T, content []byte) {
		readPage(newResolver(s), &document{file: "index.html"}, content)
		readStylesheet(newResolver(s), &document{file: "a.css"}, content)
		readXML(newResolver(s), &document{file: "a.xml"}, content)
	})
}

func TestAMissingSearchIsNamedWithTheSettingThatMakesIt(t *testing.T) {
	dir := filetest.New(t, map[string]string{"index.html": `<!doctype html><html lang="en"><title>a</title><script src="/pagefind/pagefind-ui.js"></script>`})
	report, err := Check(t.Context(), Options{Dir: dir, BaseURL: "https://example.org/"})
	if err != nil {
		t.Fatal(err)
	}
	if text := everyFinding(report); !strings.Contains(text, "error: <script src=\"/pagefind/pagefind-ui.js\"> is not in this site; Pagefind makes it after Hugo: write afterBuild: ") {
		t.Error(text)
	}
}
