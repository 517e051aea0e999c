package builtsite

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tazlab.net/castle/ci/base/filetest"
)

func TestASiteIsWhereItSaysItself(t *testing.T) {
	const siteMap = `<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"><url><loc> https://map.example:8443/a/ </loc></url></urlset>`
	for title, c := range map[string]struct {
		files map[string]string
		want  string
	}{
		"a canonical link with a host": {map[string]string{
			"index.html":  `<link rel=stylesheet href="https://cdn.example/x"><link rel=canonical href="https://example.org/a/">`,
			"sitemap.xml": siteMap,
		}, "https://example.org/a/"},
		"only a site map": {
			map[string]string{"index.html": `<link rel=canonical href="/a/">`, "sitemap.xml": siteMap}, "https://map.example:8443/a/",
		},
		"a site map that is broken": {
			map[string]string{"index.html": "", "sitemap.xml": "<urlset><loc>https://x.example/"}, "https://site.invalid/",
		},
		"a site map of addresses within": {
			map[string]string{"index.html": "", "sitemap.xml": "<urlset><url><loc>/a/</loc></url></urlset>"}, "https://site.invalid/",
		},
		"nothing": {map[string]string{"index.html": "<p>Hello"}, "https://site.invalid/"},
		"a path of two folders": {
			map[string]string{"index.html": `<link rel=canonical href="https://example.org/~me/blog/">`}, "https://example.org/~me/blog/",
		},
		"a home page by its file": {
			map[string]string{"index.html": `<link rel=canonical href="https://example.org/blog/index.html">`}, "https://example.org/blog/",
		},
		"a home page that sends on to a language's": {map[string]string{
			"index.html":    `<link rel=canonical href="https://example.org/blog/en/"><meta http-equiv=refresh content="0; url=https://example.org/blog/en/">`,
			"en/index.html": "home",
		}, "https://example.org/blog/"},
		"such a home page at the root": {map[string]string{
			"index.html":    `<meta http-equiv=refresh content="0; url=/en/"><link rel=canonical href="https://example.org/en/">`,
			"en/index.html": "home",
		}, "https://example.org/"},
		"a home page that sends on by a script": {map[string]string{
			"index.html":    `<link rel=canonical href="https://example.org/blog/en/"><script src="x.js"></script>`,
			"en/index.html": "home", "en/sitemap.xml": "<urlset></urlset>",
			"sitemap.xml": "<sitemapindex><sitemap><loc>https://example.org/blog/en/sitemap.xml</loc></sitemap></sitemapindex>",
		}, "https://example.org/blog/"},
		"a site map of pages, one of a section with the path's name": {map[string]string{
			"index.html": "home", "blog/index.html": "a section", "posts/one/index.html": "one", "about.html": "about",
			"sitemap.xml": "<urlset><url><loc>https://example.org/blog/blog/</loc></url><url><loc>https://example.org/blog/posts/one/</loc></url>" +
				"<url><loc>https://example.org/blog/about.html</loc></url><url><loc>https://example.org/blog/</loc></url></urlset>",
		}, "https://example.org/blog/"},
		"a site map of pages that are below the root": {map[string]string{
			"index.html": "home", "posts/one/index.html": "one",
			"sitemap.xml": "<urlset><url><loc>https://example.org/posts/one/</loc></url><url><loc>https://example.org/</loc></url></urlset>",
		}, "https://example.org/"},
		"only a feed": {map[string]string{
			"index.html": "home",
			"index.xml":  `<rss><channel><title>x</title><link>https://example.org/blog/</link><atom:link href="https://example.org/blog/index.xml"/></channel></rss>`,
		}, "https://example.org/blog/"},
	} {
		if got := AddressOf(filetest.New(t, c.files)).String(); got != c.want {
			t.Errorf("%s: got %s, want %s", title, got, c.want)
		}
	}
	for file, want := range map[string]string{"index.html": "", "a/index.html": "a/", "a b.html": "a%20b.html"} {
		if got := FileOf(UnknownSite, file).String(); got != "https://site.invalid/"+want {
			t.Errorf("%s: got %s", file, got)
		}
	}
}

func TestASiteIsListedAsAWebServerSeesIt(t *testing.T) {
	dir := filetest.New(t, map[string]string{"b/index.html": "b", "a.css": "a", ".well-known/x": "x"})
	for name, target := range map[string]string{"link.css": "a.css", "dangling.css": "missing.css"} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	site, err := Open(dir, "https://example.org/blog")
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(site.Files, []string{".well-known/x", "a.css", "b/index.html", "link.css"}) || !slices.Equal(site.Folders, []string{"", ".well-known", "b"}) {
		t.Errorf("files %q, folders %q", site.Files, site.Folders)
	}
	if site.Base.String() != "https://example.org/blog/" {
		t.Errorf("it is served at %s", site.Base)
	}
}

func TestFilesAreReadWithTheirPlacesUntilOneFails(t *testing.T) {
	site, err := Open(filetest.New(t, map[string]string{"a": "1", "b": "2", "c": "3"}), "")
	if err != nil {
		t.Fatal(err)
	}
	got := make([]string, len(site.Files))
	read := func(i int, content []byte) error {
		got[i] = string(content)
		return nil
	}
	if err := site.Read(t.Context(), site.Files, read); err != nil || !slices.Equal(got, []string{"1", "2", "3"}) {
		t.Errorf("%q, %v", got, err)
	}
	if err := site.Read(t.Context(), []string{"a", "missing"}, read); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	refused := errors.New("refused")
	if err := site.Read(t.Context(), site.Files, func(int, []byte) error { return refused }); !errors.Is(err, refused) {
		t.Errorf("got %v", err)
	}
}
