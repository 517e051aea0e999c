package hugobuild

import (
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/filetest"
)

func TestABaseURLThatBreaksLinksIsRefusedAndOneThatBreaksFeedsIsAWarning(t *testing.T) {
	for title, c := range map[string]struct{ files, err, warning string }{
		"a full one":            {files: "-- hugo.toml --\nbaseURL = 'https://castle.dev/blog/'\n"},
		"any host":              {files: "-- hugo.toml --\nbaseURL = '/'\n", warning: `baseURL of hugo.toml is "/": the addresses in sitemap.xml have no host`},
		"a path":                {files: "-- hugo.yaml --\nbaseURL: /blog/\n", warning: `baseURL of hugo.yaml is "/blog/": the addresses`},
		"any scheme":            {files: "-- hugo.yaml --\nbaseURL: //castle.dev/\n", warning: `baseURL of hugo.yaml is "//castle.dev/": the addresses`},
		"none":                  {files: "-- hugo.toml --\n", warning: "Hugo's configuration has no baseURL: the addresses"},
		"no scheme":             {files: "-- hugo.toml --\nbaseURL = 'castle.dev/'\n", err: `baseURL of hugo.toml is "castle.dev/", which has no scheme`},
		"a word":                {files: "-- hugo.toml --\nbaseurl = 'blog'\n", err: `is "blog", which has no scheme`},
		"no host":               {files: "-- hugo.toml --\nbaseURL = 'https:///x'\n", err: `is "https:///x", which is not an address of a website`},
		"one slash":             {files: "-- hugo.toml --\nbaseURL = 'http:/castle.dev'\n", err: "not an address of a website"},
		"another scheme":        {files: "-- hugo.toml --\nbaseURL = 'ftp://castle.dev/'\n", err: "not an address of a website"},
		"a port, no scheme":     {files: "-- hugo.toml --\nbaseURL = 'localhost:1313'\n", err: "not an address of a website"},
		"a placeholder":         {files: "-- hugo.toml --\nbaseURL = 'https://www.example.org/'\n", warning: `baseURL of hugo.toml is "https://www.example.org/", so that feeds`},
		"hugo server's":         {files: "-- hugo.toml --\nbaseURL = 'http://localhost:1313/'\n", warning: `is "http://localhost:1313/", so that feeds`},
		"of all interfaces":     {files: "-- hugo.toml --\nbaseURL = 'http://0.0.0.0/'\n", warning: `is "http://0.0.0.0/", so that feeds`},
		"another in production": {files: "-- hugo.toml --\nbaseURL = 'blog'\n-- config/production/hugo.toml --\nbaseURL = 'https://castle.dev/'\n"},
		"wrong in production": {
			files: "-- hugo.toml --\nbaseURL = 'https://castle.dev/'\n-- config/production/hugo.toml --\nbaseURL = 'blog'\n", err: "baseURL of config/production/hugo.toml is",
		},
		"the only language's": {
			files: "-- hugo.toml --\nbaseURL = 'https://castle.dev/'\n[languages.en]\nbaseURL = 'en'\n", err: `languages.en.baseURL of hugo.toml is "en"`,
		},
	} {
		t.Run(title, func(t *testing.T) {
			site, built := t.TempDir(), t.TempDir()
			write(t, site, c.files)
			own, err := ownBaseURL(site)
			if err != nil {
				t.Fatal(err)
			}
			filetest.Write(t, built+"/index.html", "")
			if warning, err := own.warning(built); err == nil && c.err == "" && strings.Contains(warning, "no host") {
				t.Errorf("a site without feeds is warned of %s", warning)
			}
			filetest.Write(t, built+"/sitemap.xml", "")
			accepted := own.text
			if c.err != "" {
				accepted = ""
			}
			if text, err := OwnBaseURL(site); err != nil || text != accepted {
				t.Errorf("the base URL that a preview is served at is %q (%v), not %q", text, err, accepted)
			}
			got, warned := "", ""
			if err := own.check(); err != nil {
				got = err.Error()
			} else if warned, err = own.warning(built); err != nil {
				t.Fatal(err)
			}
			if (c.err == "") != (got == "") || !strings.Contains(got, c.err) || (c.warning == "") != (warned == "") || !strings.Contains(warned, c.warning) {
				t.Errorf("refused with %q, warned of %q", got, warned)
			}
			if text := got + warned; text != "" && !strings.Contains(text, "--base-url") {
				t.Errorf("no fix in %q", text)
			}
		})
	}
}
