package browsercheck

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/base/filetest"
	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/publish/site/browsercheck/pagechoice"
	"tazlab.net/castle/ci/publish/site/sitetest"
	"tazlab.net/castle/ci/test/needs"
	"tazlab.net/castle/ci/test/tell"
)

// summary has a line for each finding, and its examples' pages.
func summary(report Report) []string {
	lines := []string{}
	for _, finding := range report.Findings {
		line := fmt.Sprintf("%s: %s:", finding.Rule, finding.Cause)
		for _, example := range finding.Examples {
			if page := " " + example.Page; !strings.HasSuffix(line, page) {
				line += page
			}
		}
		lines = append(lines, line)
	}
	slices.Sort(lines)
	return lines
}

func expect(t *testing.T, report Report, want ...string) {
	t.Helper()
	slices.Sort(want)
	if got := summary(report); !slices.Equal(got, want) {
		t.Errorf("found\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

// head begins a page that is in order.
const head = `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>page</title></head><body>`

func TestWhatThePolicyRefusesIsFound(t *testing.T) {
	tell.Fault(t, "pages with scripts, styles, fonts and frames that the policy refuses")
	report := look(t, `
-- index.html --
`+head+`home
-- 404.html --
`+head+`<main></main><p style="color: red">none</p>
-- script/index.html --
`+head+`<article></article><script>document.title = "x"</script>
-- handler/index.html --
`+head+`<img src="/a.svg" alt="" onload="document.title = 'x'">
-- style/index.html --
`+head+`<style>p { color: red }</style>
-- font/index.html --
`+head+`<link rel="stylesheet" href="/font.css"><p>x</p>
-- frame/index.html --
`+head+`<iframe src="https://video.example/1"></iframe>
-- framed/index.html --
`+head+`<iframe src="/"></iframe>
-- foreign/index.html --
`+head+`<section></section><script src="https://scripts.example/a.js"></script><img src="https://pictures.example/a.png" alt="">
-- eval/index.html --
`+head+`<script src="/eval.js"></script>
-- eval.js --
new Function("return 1");
-- a.svg --
<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>
-- font.css --
@font-face { font-family: far; src: url(https://fonts.example/far.woff2) }
@font-face { font-family: near; src: url(data:font/woff2;base64,AA==) }
p { font-family: far, near }
`, nil)
	expect(t, report,
		"violation: style-src-attr refuses a style attribute: "+pagechoice.NotFoundPath,
		"violation: script-src-elem refuses an inline script: /script/",
		"violation: script-src-attr refuses a handler in an attribute: /handler/",
		"violation: style-src-elem refuses an inline style: /style/",
		"violation: font-src refuses fonts.example: /font/",
		"violation: font-src refuses data:: /font/",
		"violation: frame-src refuses video.example: /frame/",
		"violation: frame-ancestors refuses the site itself: /framed/",
		"missing: /: blocked (other): /framed/",
		"violation: script-src-elem refuses scripts.example: /foreign/",
		"violation: img-src refuses pictures.example: /foreign/",
		"violation: script-src refuses eval of a string: /eval/",
	)
	tell.Observation(t, 0, "the browser saw %d kinds of violations and what is missing", len(report.Findings))
	if !strings.HasPrefix(report.Policy, "default-src 'self'") || report.Errors() != len(report.Findings) || report.Of != 10 {
		t.Errorf("%+v", report)
	}
	for _, finding := range report.Findings {
		if finding.Cause == "font-src refuses fonts.example" && !strings.HasSuffix(finding.Examples[0].Where, "asks for https://fonts.example/far.woff2") {
			t.Errorf("the font's address is not told: %+v", finding)
		}
	}
}

// What pages do beside being shown: dialogs, downloads, windows, service workers, frames, a redirect, and a stylesheet's
// lazy picture.
const clean = `
-- index.html --
<!doctype html><html lang="en"><head><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=/en/"><title>x</title></head></html>
-- en/index.html --
` + head + `<script src="/noise.js"></script><link rel="stylesheet" href="/a.css"><img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=" alt="">
-- 404.html --
` + head + `<main>none
-- noise.js --
alert("hello");
confirm("sure?");
onbeforeunload = () => "stay";
navigator.serviceWorker?.register("/worker.js");
open("/en/?again");
const link = document.createElement("a");
link.href = "/a.zip";
link.download = "a.zip";
document.body.append(link);
link.click();
console.warn("a warning is no error");
-- worker.js --
onfetch = () => {};
-- a.zip --
zip
-- a.css --
body { background: url(/a.svg) }
-- a.svg --
<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>
`

func TestASiteInOrderHasNoFindings(t *testing.T) {
	shots := filepath.Join(t.TempDir(), "shots")
	report := look(t, clean, func(o *Options) { o.Widths, o.Screenshots = []int{390, 1280}, shots })
	expect(t, report)
	for _, name := range []string{"home-390.png", "home-1280.png", "404-390.png", "en-1280.png"} {
		if data, err := os.ReadFile(filepath.Join(shots, name)); err != nil || !strings.HasPrefix(string(data), "\x89PNG") {
			t.Errorf("%s: %v, %d bytes", name, err, len(data))
		}
	}
}

// The browser ignores the opener policy over plain HTTP and says so on each page.
func TestASiteThatIsBuiltForAnAddressWithoutTLSIsInOrder(t *testing.T) {
	expect(t, look(t, `
-- index.html --
<!doctype html><html lang="en"><head><meta charset="utf-8"><title>page</title><link rel="canonical" href="http://site.example/"></head><body>home
`, func(o *Options) {
		o.URL = serve(t, o.Dir, map[string]string{"Content-Security-Policy": strict, "Cross-Origin-Opener-Policy": "same-origin"})
	}))
}

func TestWhatIsTheSameWithoutTheHeadersIsNotCounted(t *testing.T) {
	report := look(t, `
-- index.html --
<!doctype html><html lang="en"><head><meta charset="utf-8"><title>x</title>
<meta http-equiv="Content-Security-Policy" content="style-src 'self'"></head><body><p style="color: red">x</p>
<script>window.settings = {}</script><script src="/a.js"></script>
-- a.js --
console.error("always", 1, "%s");
setTimeout(() => { throw new Error("always thrown") });
settings.color = "red";
`, nil)
	expect(t, report,
		"violation: script-src-elem refuses an inline script: /",
		"exception: Uncaught ReferenceError: settings is not defined: /",
	)
	if report.Anyway != 3 {
		t.Errorf("%d are told to be there anyway", report.Anyway)
	}
}

func TestAMissingFileOfTheSitesOwnIsFound(t *testing.T) {
	report := look(t, `
-- index.html --
`+head+`<script src="/gone.js"></script><div style="height: 9000px"></div><img loading="lazy" src="/gone.png" alt="">
<div id="box"><div></div><img loading="lazy" src="/gone-inside.png" alt=""></div><div style="height: 20000px"></div><link rel="stylesheet" href="/a.css">
-- a.css --
@import "/gone.css";
#box { height: 300px; overflow-y: auto }
#box div { height: 9000px }
`, func(o *Options) {
		if err := os.WriteFile(filepath.Join(o.Dir, "new.html"), []byte(head+"<canvas></canvas>"), 0o644); err != nil {
			t.Fatal(err)
		}
		served := t.TempDir()
		for _, name := range []string{"index.html", "a.css"} {
			if err := os.Link(filepath.Join(o.Dir, name), filepath.Join(served, name)); err != nil {
				t.Fatal(err)
			}
		}
		o.URL = serve(t, served, nil)
	})
	expect(t, report,
		"missing: /gone.js: 404: /", "missing: /gone.css: 404: /", "missing: /gone.png: 404: /", "missing: /gone-inside.png: 404: /",
		"status: the page answers 404, want 200: /new.html",
	)
}

func TestTheSiteIsSeenAtItsOwnAddress(t *testing.T) {
	files := `
-- index.html --
` + head + `<link rel="canonical" href="https://blog.example/"><script src="https://blog.example%[1]s/a.js"></script>
<a href="/">x</a><img src="%[1]s/a.svg" alt="">
-- a.js --
if (!isSecureContext) throw new Error("no secure context at " + location);
-- a.svg --
<svg xmlns="http://www.w3.org/2000/svg" width="1" height="1"/>
`
	for name, base := range map[string]string{"by its canonical link": "", "by its base URL": "https://blog.example/under/"} {
		t.Run(name, func(t *testing.T) {
			folder := ""
			if base != "" {
				folder = "/under"
			}
			report := look(t, fmt.Sprintf(files, folder), func(o *Options) {
				o.BaseURL = base
				if base != "" { // the server has the site below the path, as its image does
					above := t.TempDir()
					if err := os.Symlink(o.Dir, filepath.Join(above, folder)); err != nil {
						t.Fatal(err)
					}
					filetest.Write(t, filepath.Join(above, "index.html"), head+`<script src="/not-of-the-site.js"></script>`)
					o.URL = serve(t, above, nil)
				}
			})
			expect(t, report)
			if len(report.Foreign) > 0 || !strings.HasPrefix(report.Site, "https://blog.example") {
				t.Errorf("%s, %v", report.Site, report.Foreign)
			}
		})
	}
}

func TestAHostThatCannotBeReachedIsNotTheSitesFault(t *testing.T) {
	asked := false
	near := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	t.Cleanup(near.Close)
	report := look(t, `
-- index.html --
`+head+`<script src="https://scripts.example/a.js"></script><img src="`+near.URL+`/a.png" alt="">
`, func(o *Options) { o.URL = serve(t, o.Dir, nil) })
	expect(t, report)
	text, err := rendering.As("text", report)
	if err != nil || !strings.Contains(text, "2 of 2 requests to other hosts failed (127.0.0.1:") || !strings.Contains(text, ", scripts.example)") {
		t.Errorf("%v\n%s", err, text)
	}
	if asked {
		t.Error("another host is asked, though the browser is to find none")
	}
}

func TestAPageThatNeverSettlesIsJudgedAtItsDeadline(t *testing.T) {
	report := look(t, `
-- index.html --
`+head+`<script src="/a.js"></script><img src="/gone.png" alt="">
-- a.js --
setInterval(() => fetch("/a.js?" + Math.random()), 50);
-- busy.html --
`+head+`<canvas></canvas><script src="/busy.js"></script>
-- busy.js --
for (;;) {}
`, func(o *Options) { o.PageDeadline = 3 * time.Second })
	expect(t, report, "restless: still loading after 3s; judged as it was then: / /busy.html", "missing: /gone.png: 404: /")
	if report.Errors() != 1 {
		t.Errorf("%d errors; a page that goes on loading is a warning", report.Errors())
	}
}

func TestPagesThatTheTimeDoesNotSufficeForAreTold(t *testing.T) {
	report := look(t, `
-- index.html --
`+head+`<script src="/a.js"></script>
-- a.js --
setInterval(() => fetch("/a.js?" + Math.random()), 50);
`, func(o *Options) { o.Deadline = 6 * time.Second })
	expect(t, report, "not-opened: the time for all pages is up after 6s, and some pages were not opened: /")
}

func TestMistakesAreToldAllAtOnce(t *testing.T) {
	_, err := Check(t.Context(), Options{URL: "site:8080", BaseURL: "/blog/", Widths: []int{39}, Pages: -1, Program: "no-such-browser"})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{`the site's URL is "site:8080": want a full address`, `the base URL is "/blog/"`, "a width of 39", "must not be negative",
		"no-such-browser"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

func TestASiteThatIsNotServedIsToldOnce(t *testing.T) {
	folder := sitetest.Unpack(t, "-- index.html --\n"+head)
	_, err := Check(t.Context(), Options{URL: "http://127.0.0.1:1", Dir: folder, Program: needs.Command(t, "chromium", Programs...)})
	if err == nil || !strings.Contains(err.Error(), "the site is not served") || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("%v", err)
	}
}

func TestAFolderThatIsNoSiteIsRefused(t *testing.T) {
	for folder, want := range map[string]string{
		filepath.Join(t.TempDir(), "missing"): "is not a folder",
		t.TempDir():                           "has no index.html",
	} {
		if _, err := readHome(folder); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", folder, err)
		}
	}
}
