package sitediff

import (
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/filetest"
	"tazlab.net/castle/ci/base/rendering"
)

func compare(t *testing.T, first, second map[string]string) Report {
	t.Helper()
	report, err := Compare(t.Context(), filetest.New(t, first), filetest.New(t, second))
	if err != nil {
		t.Fatal(err)
	}
	return report
}

func TestADifferenceHasItsCause(t *testing.T) {
	for _, c := range []struct{ cause, first, second string }{
		{"time", `<meta name=built content="2026-11-22T03:20:01Z">`, `<meta name=built content="2026-11-22T03:20:04Z">`},
		{"time", `<p>Made Nov 2, 2026 at 11:59 PM</p>`, `<p>Made Nov 3, 2026 at 12:00 AM</p>`},
		{"time", `<lastBuildDate>Sun, 22 Nov 2026 03:20:01 +0000</lastBuildDate>`, `<lastBuildDate>Mon, 23 Nov 2026 03:20:01 +0000</lastBuildDate>`},
		{"time", `2026-11-22 03:20:01.123456 +0000 UTC m=+0.123`, `2026-11-22 03:20:04.654321 +0000 UTC m=+0.145`},
		{"time", `<script src=a.js?v=1795317601></script>`, `<script src=a.js?v=1795317604></script>`},
		{"time", `<script src=a.js?v=1795317601123456789></script>`, `<script src=a.js?v=1795317604123456789></script>`},
		{"random", `<p id="x-3f2a9c01d2">a</p>`, `<p id="x-99ab12cd34">a</p>`},
		{"random", `<p id=b0d3b1e2-1111-4a4a-9c9c-0123456789ab>`, `<p id=c1d3b1e2-2222-4b4b-8d8d-0123456789ab>`},
		{"random", `<p id=gallery-4711>`, `<p id=gallery-815>`},
		{"fingerprint", `<link href="/css/main.min.` + strings.Repeat("a1", 32) + `.css">`, `<link href="/css/main.min.` + strings.Repeat("b2", 32) + `.css">`},
		{"fingerprint", `<script integrity="sha512-AAAA+/==">`, `<script integrity="sha512-BBBB+/==">`},
		{"term", `<a href=/tags/ai/>AI</a> and more`, `<a href=/tags/ai/>Ai</a> and more`},
		{"term", `<h1>Context Management</h1>`, `<h1>Context-Management</h1>`},
		{"term", `<a title="Context Management" href=/x>x</a>`, `<a title=Context-Management href=/x>x</a>`},
		{"other", `<p>internationalization</p>`, `<p>commercialization</p>`},
		{"other", `<p class=a>one</p>`, `<p id=a>one</p>`},
		{"order", `<li><a href="/a/">a</a><li><a href="/b/">b</a>`, `<li><a href="/b/">b</a><li><a href="/a/">a</a>`},
		{"other", `<p>Sunny, with some wind</p>`, `<p>Rain</p>`},
		{"other", `<p>one</p>`, `<p>one</p><p>two</p>`},
		{"binary", "\x89PNG\x00\x01", "\x89PNG\x00\x02"},
	} {
		report := compare(t, map[string]string{"a": c.first, "same": "x"}, map[string]string{"a": c.second, "same": "x"})
		if report.Files != 2 || report.Differing != 1 || len(report.Causes) != 1 || report.Causes[0].Name != c.cause {
			t.Errorf("%s and %s: want %s, got\n%s", c.first, c.second, c.cause, report.Text())
		}
	}
}

func TestEqualBuildsHaveNoCause(t *testing.T) {
	same := map[string]string{"index.html": "<p>x</p>", "a/b.png": "\x89PNG\x00"}
	report := compare(t, same, same)
	if report.Differing != 0 || len(report.Causes) != 0 || report.Text() != "Both builds are the same, all 2 files\n" {
		t.Fatalf("%+v", report)
	}
}

func TestAFileThatOneBuildHasIsNamed(t *testing.T) {
	report := compare(t, map[string]string{"old.css": "", "same": ""}, map[string]string{"new.css": "", "same": ""})
	const want = "The builds differ in 2 of 2 files\n\n" +
		"presence: a file that one build alone has (2)\n"
	if text := report.Text(); !strings.HasPrefix(text, want) || !strings.Contains(text, "    new.css\n      + there\n    old.css\n      - there\n") {
		t.Fatal(text)
	}
}

func TestCausesOfOneFileAreToldApartAndCounted(t *testing.T) {
	page := func(title, time string) string {
		return "<h1>" + title + "</h1><p>The same text</p><time>" + time + "</time>"
	}
	first, second := map[string]string{}, map[string]string{}
	for _, name := range []string{"a.html", "b.html", "c.html", "d.html"} {
		first[name], second[name] = page("Same", "2026-01-02T03:04:05Z"), page("Same", "2026-01-02T03:04:06Z")
	}
	first["a.html"], second["a.html"] = page("AI", "2026-01-02T03:04:05Z"), page("ai", "2026-01-02T03:04:06Z")
	report := compare(t, first, second)
	if len(report.Causes) != 2 || report.Causes[0].Name != "time" || report.Causes[0].Files != 4 || report.Causes[1].Name != "term" {
		t.Fatal(report.Text())
	}
	if examples := report.Causes[0].Examples; len(examples) != 3 || examples[0] != (Example{"a.html", "2026-01-02T03:04:05Z", "2026-01-02T03:04:06Z"}) {
		t.Fatalf("%+v", examples)
	}
	for _, format := range []string{"text", "json", "markdown"} {
		if text, err := rendering.As(format, report); err != nil || !strings.Contains(text, "2026-01-02T03:04:06Z") {
			t.Errorf("%s, %v", text, err)
		}
	}
}

func TestAnOrderIsSeenAmongOtherDifferences(t *testing.T) {
	report := compare(t,
		map[string]string{"a": `<p id="x-3f2a9c01d2">2026-01-02</p><ul><li>one</li><li>2</li><li>three</li><li>four</li></ul>`},
		map[string]string{"a": `<p id="x-99ab12cd34">2026-01-03</p><ul><li>four</li><li>three</li><li>2</li><li>one</li></ul>`})
	var names []string
	for _, c := range report.Causes {
		names = append(names, c.Name)
	}
	if got := strings.Join(names, " "); got != "order random time" {
		t.Fatalf("%s\n%s", got, report.Text())
	}
}

func TestAFolderThatIsNotThereIsNamed(t *testing.T) {
	if _, err := Compare(t.Context(), t.TempDir(), "missing"); err == nil || !strings.HasPrefix(err.Error(), "missing is no folder") {
		t.Fatalf("error = %v", err)
	}
}
