package webref

import (
	"fmt"
	"strings"
	"testing"
)

func TestAReferenceOfAStylesheetIsToldByWhatItIsLoadedAs(t *testing.T) {
	for css, want := range map[string]string{
		`a { background: url(a.png) }`:                                            "0 a.png 0",
		`@import "a.css"; b { c: "no" }`:                                          "0 a.css 2",
		`@import url('a.css') screen;` + "\n" + `a{b:url(c)}`:                     "0 a.css 2, 1 c 0",
		`@font-face { font-family: "x"; src: url(a.woff2), url("b.woff"); }`:      "0 a.woff2 1, 0 b.woff 1",
		`@font-face{src:url(a.woff)} p{background:url(b.png)}`:                    "0 a.woff 1, 0 b.png 0",
		`@namespace svg url(http://www.w3.org/2000/svg); a{b:url(c)}`:             "0 c 0",
		`a { b: url(data:image/svg+xml;charset=utf8,%3Csvg%3E) } c { d: url(e) }`: "0 data:image/svg+xml;charset=utf8,%3Csvg%3E 0, 0 e 0",
	} {
		var got []string
		for _, r := range Stylesheet([]byte(css)) {
			got = append(got, fmt.Sprint(r.Line, " ", r.URL, " ", int(r.Use)))
		}
		if got := strings.Join(got, ", "); got != want {
			t.Errorf("%s: got %q, want %q", css, got, want)
		}
	}
}

func TestSrcsetIsSplitAsBrowsersDo(t *testing.T) {
	for value, want := range map[string]string{
		"a.png":                          "a.png",
		"a.png 1x, b.png 2x":             "a.png b.png",
		"a.png,b.png":                    "a.png,b.png", // a comma inside a URL belongs to it
		"a.png, b.png":                   "a.png b.png",
		"data:image/png;base64,AA== 1x,": "data:image/png;base64,AA==",
		" a.png 100w (x, y), b.png":      "a.png b.png",
		" , ":                            "",
	} {
		var got []string
		for _, url := range Srcset([]byte(value)) {
			got = append(got, string(url))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("Srcset(%q) = %q; want %q", value, got, want)
		}
	}
}

func TestStylesheetReferencesAreFoundWhereBrowsersFindThem(t *testing.T) {
	for text, want := range map[string]string{
		`a{b:url(x.png)}`:                     "x.png",
		`a{b:URL( 'x y.png' )}`:               "x y.png",
		`a{b:url(x\).png)}`:                   "x).png",
		`/* url(x) */a{b:url(y)}`:             "y",
		`a{content:"url(x)"}`:                 "",
		`@import "x.css" screen; @import'y';`: "x.css y",
		`@import url("x.css");`:               "x.css",
		`@charset "utf-8";`:                   "",
		`a{b:url("x`:                          "x",
		`/* never closed url(x)`:              "",
	} {
		var got []string
		for _, reference := range Stylesheet([]byte(text)) {
			got = append(got, reference.URL)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("Stylesheet(%q) = %q; want %q", text, got, want)
		}
	}
}
