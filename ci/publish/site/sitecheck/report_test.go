package sitecheck

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/filetest"
	"tazlab.net/castle/ci/base/findings"

	"tazlab.net/castle/ci/base/rendering/renderingtest"
	"tazlab.net/castle/ci/publish/site/sitecheck/rules"
)

// themedPage is a page as a theme's templates make it: the same mistakes on each, on a line of its own length.
func themedPage(n int) string {
	return goodPage + strings.Repeat("\n", n%7) +
		`<link rel=preconnect href="https://fonts.example"><script src="https://cdn.example/a.js"></script><script src="https://cdn.example/b.js"></script>` +
		`<button type=button><div>menu</div></button><img class=logo src=/logo.png>` +
		fmt.Sprintf(`<p id=a>page %d</p><p id=a></p>`, n)
}

func themedSite(pages int) map[string]string {
	files := map[string]string{
		"index.html": themedPage(0) + `<a href="/gone/">gone</a>` + `<img src="data:image/png;base64,` + strings.Repeat("A", 5000) + `">`,
		"logo.png":   "png",
	}
	for n := 1; n < pages; n++ {
		files[fmt.Sprintf("post-%03d/index.html", n)] = themedPage(n)
	}
	files["post-001/index.html"] += `<a href="../gone/">gone</a>` + `<a href="#nowhere">nowhere</a>`
	return files
}

func check(t *testing.T, files map[string]string, options Options) Report {
	t.Helper()
	options.Dir, options.BaseURL = filetest.New(t, files), "https://example.org/"
	report, err := Check(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// TestAReportIsReadInEveryFormat compares with testdata/report.*; a baseline and an entry to ignore are in it.
func TestAReportIsReadInEveryFormat(t *testing.T) {
	report := check(t, themedSite(4), Options{
		Ignore:   []string{"nesting:post-*"},
		Baseline: findings.Baseline{rules.ImgAlt: {`<img class="logo">`: {"index.html": 1, "post-002/index.html": 2, "post-009/index.html": 1}}},
	})
	renderingtest.MustRead(t, "report", report)
}

func TestAThousandPagesWithTheSameMistakesAreAFewRows(t *testing.T) {
	report := check(t, themedSite(1000), Options{})
	if report.Errors != 3 || report.Warnings < 6000 {
		t.Fatalf("%d errors, %d warnings", report.Errors, report.Warnings)
	}
	lines := strings.Split(strings.TrimSpace(report.Text()), "\n")
	if most := (1 + findings.ExamplesShown) * len(report.Groups); len(lines) > most+1 || len(report.Groups) != 8 {
		t.Errorf("%d groups in %d lines:\n%s", len(report.Groups), len(lines), report.Text())
	}
	for _, line := range lines {
		if len([]rune(line)) > findings.Widest+len("    ") {
			t.Errorf("a line of %d characters: %s", len([]rune(line)), line)
		}
	}
	if !strings.HasPrefix(lines[0], "error       2 in    2 files  broken-link: /gone/") {
		t.Errorf("errors are not first: %s", lines[0])
	}
	if !strings.HasPrefix(lines[5], "warning  2000 in 1000 files  foreign-request: cdn.example by <script src>") {
		t.Errorf("the most frequent warning is not first: %s", lines[5])
	}
}

func TestForeignRequestsAreErrorsUnderAStrictPolicy(t *testing.T) {
	files := map[string]string{"index.html": goodPage + `<script src="https://cdn.example/a.js"></script><h1>a</h1><h3>b</h3>`}
	if report := check(t, files, Options{}); report.Errors != 0 || report.Warnings != 2 {
		t.Errorf("not strict: %s", report.Text())
	}
	if report := check(t, files, Options{Strict: true}); report.Errors != 1 || report.Warnings != 1 {
		t.Errorf("strict: %s", report.Text())
	}
}

func TestFindingsAreIgnoredByRuleCauseOrFile(t *testing.T) {
	files := map[string]string{
		"index.html":        goodPage + `<a href="/old/a/">a</a><a href="/new/">n</a><h1>a</h1><h3>b</h3>`,
		"blog/b/index.html": goodPage + `<a href="/old/b/c/">b</a><h1>a</h1><h3>b</h3>`,
	}
	for entries, want := range map[string]string{
		"":                                      "/new/ /old/a/ /old/b/c/ <h3> after <h1> <h3> after <h1>",
		"broken-link":                           "<h3> after <h1> <h3> after <h1>",
		"broken-link:/old/*":                    "/new/ <h3> after <h1> <h3> after <h1>",
		"broken-link:/old/?/":                   "/new/ /old/b/c/ <h3> after <h1> <h3> after <h1>",
		"broken-link:/old/":                     "/new/ /old/a/ /old/b/c/ <h3> after <h1> <h3> after <h1>",
		"broken-link:blog/*":                    "/new/ /old/a/ <h3> after <h1> <h3> after <h1>",
		"heading-order:<h3> after <h?>":         "/new/ /old/a/ /old/b/c/",
		"heading-order:*index.html broken-link": "",
	} {
		var ignore []string
		if entries == "heading-order:<h3> after <h?>" {
			ignore = []string{entries}
		} else {
			ignore = strings.Fields(entries)
		}
		report := check(t, files, Options{Ignore: ignore})
		var causes []string
		for _, finding := range report.Findings {
			causes = append(causes, finding.Cause)
		}
		slices.Sort(causes)
		if got := strings.Join(causes, " "); got != want || report.Ignored != 5-len(causes) {
			t.Errorf("ignoring %q leaves %q, %d ignored; want %q", ignore, got, report.Ignored, want)
		}
	}
}

func TestAllMistakesInWhatToIgnoreAreNamedAtOnce(t *testing.T) {
	_, err := Check(t.Context(), Options{Dir: "missing", Ignore: []string{"img-alt", "alt", "nesting:", ":x"}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{
		`ignore "alt": "alt" is no rule; want one of block-in-p, broken-link, `,
		`ignore "nesting:": nothing stands after the colon; write a pattern, or "nesting" for the whole rule`,
		`ignore ":x": "" is no rule`,
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\nlacks %s", err, want)
		}
	}
	if strings.Contains(err.Error(), "img-alt\":") || strings.Contains(err.Error(), "read site") {
		t.Errorf("%v", err)
	}
}

func TestOnlyWhatTheBaselineDoesNotHoldIsReported(t *testing.T) {
	files := themedSite(5)
	files["css/main.0123456789abcdef0123456789abcdef.css"] = `a{background:url(/none.png)}`
	name := filepath.Join(t.TempDir(), "baseline.json")
	if err := check(t, files, Options{}).Baseline().Write(name); err != nil {
		t.Fatal(err)
	}
	baseline, err := findings.ReadBaseline(name)
	if err != nil {
		t.Fatal(err)
	}

	// The lines move, a fingerprint changes, and nothing is new.
	for page, content := range files {
		files[page] = strings.Replace(content, "<title>", "\n\n<title>", 1)
	}
	files["css/main.fedcba9876543210fedcba9876543210.css"] = files["css/main.0123456789abcdef0123456789abcdef.css"] + "\n"
	delete(files, "css/main.0123456789abcdef0123456789abcdef.css")
	report := check(t, files, Options{Baseline: baseline})
	if len(report.Findings) != 0 || report.Errors != 0 || report.Known != 35 || report.Gone != 0 {
		t.Errorf("nothing changed: %s", report.Text())
	}

	// One more of a kind that the page has, a new kind, a new page, and something mended.
	files["post-002/index.html"] += `<img class=logo src=/logo.png><h1>a</h1><h3>b</h3>`
	files["post-009/index.html"] = goodPage + `<a href="/gone/">gone</a>`
	files["index.html"] = strings.ReplaceAll(files["index.html"], `href="/gone/"`, `href="/"`)
	report = check(t, files, Options{Baseline: baseline})
	var got []string
	for _, finding := range report.Findings {
		got = append(got, finding.File+" "+finding.Rule)
	}
	want := []string{"post-002/index.html img-alt", "post-002/index.html heading-order", "post-009/index.html broken-link"}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) || report.Gone != 1 || report.Known != 34 {
		t.Errorf("found %q; want %q\n%s", got, want, report.Text())
	}
	if !strings.Contains(report.Text(), "1 entry of the baseline no longer occurs, or less often: write the baseline anew\n") {
		t.Error(report.Text())
	}
}

func TestABaselineIsTheSameWheneverItIsWrittenAndHasALineForEachFile(t *testing.T) {
	write := func() string {
		name := filepath.Join(t.TempDir(), "baseline.json")
		if err := check(t, themedSite(2), Options{}).Baseline().Write(name); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	first := write()
	if second := write(); first != second {
		t.Errorf("first\n%s\nthen\n%s", first, second)
	}
	if want := `  "foreign-request": {
    "cdn.example by <script src>": {
      "index.html": 2,
      "post-001/index.html": 2
    },
`; !strings.Contains(first, want) {
		t.Errorf("got\n%s\nwant in it\n%s", first, want)
	}
}

func TestAFileThatIsNoBaselineIsRefused(t *testing.T) {
	for _, text := range []string{"", "[]", `{"nesting": {"x": 1}}`, `{} {}`} {
		name := filepath.Join(t.TempDir(), "baseline.json")
		filetest.Write(t, name, text)
		if _, err := findings.ReadBaseline(name); err == nil || !strings.Contains(err.Error(), name+" is no baseline: ") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := findings.ReadBaseline(filepath.Join(t.TempDir(), "missing.json")); err == nil || !strings.Contains(err.Error(), "missing.json") {
		t.Error(err)
	}
}
