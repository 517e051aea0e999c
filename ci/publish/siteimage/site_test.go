package siteimage

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/klauspost/compress/gzip"

	"tazlab.net/castle/ci/base/filetest"
)

func TestPathsTellWhatChangesHowOften(t *testing.T) {
	want := map[string]kind{
		"index.html": list, "index.xml": feed, "index.json": feed, "sitemap.xml": feed, "robots.txt": feed, "404.html": list, "about.html": list,
		"it/index.html": list, "it/index.json": feed, "it/sitemap.xml": feed, "it/404.html": page, "articles/index.html": list,
		"articles/page/2/index.html": list, "articles/index.xml": feed,
		"articles/one/index.html": page, "articles/one/data.json": page, "articles/one/cover.png": asset, "articles/ugly.html": page,
		"it/articoli/uno/index.html": page, "it/articoli/index.html": list, "notes/index.html": list, "notes/index.xml": feed,
		"tags/index.html": termList, "tags/go/index.html": termList, "tags/go/page/3/index.html": termList, "tags/go/index.xml": feed,
		"it/tags/go/index.html": termList, "zh-Hans/categories/x/index.html": termList,
		"etiketten/tags/index.html": page, "css/main.css": asset, "FONT.WOFF2": asset, "PAGE/x/INDEX.HTML": page, "feed.rss": asset,
		"pagefind/pagefind.js": asset, "pagefind/wasm.en.pagefind": asset, "pagefind/pagefind-entry.json": feed, "pagefind/pagefind.en_1.pf_meta": feed,
		"pagefind/index/en_2.pf_index": feed, "pagefind/filter/en_3.pf_filter": feed, "pagefind/fragment/en_4.pf_fragment": page, "sw.js": feed, "js/sw.js.map": asset,
	}
	var s site
	for name := range want {
		s.files = append(s.files, file{path: name})
	}
	for i, got := range s.classify() {
		if name := s.files[i].path; got != want[name] {
			t.Errorf("%s is of kind %d, want %d", name, got, want[name])
		}
	}
}

func TestTheNumberOfShardsGrowsInCoarseSteps(t *testing.T) {
	for bytes, want := range map[int64]uint32{0: 1, 1<<20 - 1: 1, 1 << 20: 4, 16<<20 - 1: 4, 16 << 20: 16, 64 << 20: 32, 1 << 40: 32} {
		if got := page.shards(bytes); got != want {
			t.Errorf("%d bytes of pages: %d shards, want %d", bytes, got, want)
		}
	}
	for bytes, want := range map[int64]uint32{0: 1, 16<<20 - 1: 1, 16 << 20: 4, 1 << 30: 16} {
		if got := asset.shards(bytes); got != want {
			t.Errorf("%d bytes of assets: %d shards, want %d", bytes, got, want)
		}
	}
}

// Linux mounts 127 layers at most. A base image has up to ten, and the server is one more.
func TestTheLargestSiteStaysWellBelowTheLimitOfLayers(t *testing.T) {
	layers := uint32(10 + 1)
	for k := range kinds {
		layers += k.shards(1 << 50)
	}
	if layers > 110 {
		t.Errorf("%d layers", layers)
	}
}

func TestShardsAreOfSimilarSize(t *testing.T) {
	var s site
	for name, content := range pages(2500, 7000) {
		s.files = append(s.files, file{path: name, size: int64(len(content))})
	}
	groups := s.groups(siteDir)
	if len(groups) != 18 {
		t.Fatalf("%d layers, want 16 of pages, the lists and the feeds", len(groups))
	}
	for _, g := range groups[:16] {
		if n := len(g.files); n < 100 || n > 220 {
			t.Errorf("%s has %d of 2500 pages", g.name, n)
		}
	}
}

// What Pagefind makes of one edit: another text of the page, other parts of the index, and the program as it was.
func TestASearchIndexIsSentWithoutTheAssets(t *testing.T) {
	layers := func(version string) map[string]string {
		files := map[string]string{
			"index.html": "home", "pictures/a.png": "a", "pagefind/pagefind.js": "program", "pagefind/wasm.en.pagefind": "program",
			"pagefind/pagefind-entry.json": version, "pagefind/pagefind.en_" + version + ".pf_meta": version,
			"pagefind/index/en_" + version + ".pf_index": version, "pagefind/fragment/en_" + version + ".pf_fragment": version, "sw.js": version,
		}
		for i := range 400 {
			files[fmt.Sprintf("pagefind/fragment/en_%d.pf_fragment", i)] = strings.Repeat("x", 4000)
		}
		var s site
		for _, name := range slices.Sorted(maps.Keys(files)) {
			s.files = append(s.files, memoryFile(name, []byte(files[name])))
		}
		keys := map[string]string{}
		for _, g := range s.groups(siteDir) {
			keys[g.name] = g.key()
		}
		return keys
	}
	before, after := layers("before"), layers("after")
	var sent []string
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if before[name] != after[name] {
			sent = append(sent, name)
		}
	}
	if want := []string{"feeds", "pages 1/4", "pages 2/4"}; !slices.Equal(sent, want) {
		t.Errorf("%q are sent of %q, want %q", sent, slices.Sorted(maps.Keys(after)), want)
	}
}

func TestALinkInsideTheSiteIsFollowedAndOneOutOfItRefused(t *testing.T) {
	dir := filetest.New(t, smallSite())
	link(t, "articles/one/index.html", filepath.Join(dir, "latest.html"))
	o := newOptions(t, dir)
	image, report := mustBuild(t, o)
	if e := entries(t, image, report)["srv/www/latest.html"]; e.content != smallSite()["articles/one/index.html"] {
		t.Errorf("latest.html has %d bytes", len(e.content))
	}
	secret := filepath.Join(t.TempDir(), "secret")
	filetest.Write(t, secret, "secret")
	for name, target := range map[string]string{
		"absolute.html": secret, "relative.html": "../../../../../../../../etc/hostname", "dangling.html": "nowhere", "folder": "articles",
	} {
		path := filepath.Join(dir, name)
		link(t, target, path)
		_, _, err := Build(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s → %s: %v", name, target, err)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

func link(t *testing.T, target, path string) {
	t.Helper()
	if err := os.Symlink(target, path); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsNoFileIsRefused(t *testing.T) {
	dir := filetest.New(t, smallSite())
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Build(t.Context(), newOptions(t, dir)); err == nil || !strings.Contains(err.Error(), "pipe is neither a file nor a folder") {
		t.Errorf("got %v", err)
	}
}

func TestAFolderThatIsNoSiteIsRefused(t *testing.T) {
	o := newOptions(t, filetest.New(t, map[string]string{"public/index.html": "x"}))
	if _, _, err := Build(t.Context(), o); err == nil || !strings.Contains(err.Error(), "no index.html") {
		t.Errorf("got %v", err)
	}
	o.Site = filepath.Join(o.Site, "missing")
	if _, _, err := Build(t.Context(), o); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("got %v", err)
	}
}

func TestTheSitesOwnVariantIsKeptWhenItHoldsTheSame(t *testing.T) {
	files := smallSite()
	var own bytes.Buffer
	w, err := gzip.NewWriterLevel(&own, gzip.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	w.Comment = "made by the site's own tool"
	if _, err := w.Write([]byte(files["index.html"])); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	files["index.html.gz"] = own.String()
	image, report := mustBuild(t, newOptions(t, filetest.New(t, files)))
	if entries(t, image, report)["srv/www/index.html.gz"].content != own.String() {
		t.Error("the site's own variant was replaced")
	}
	for name, wrong := range map[string]string{"other content": strings.Replace(files["index.html"], "home", "hone", 1), "no gzip": ""} {
		own.Reset()
		if wrong != "" {
			w.Reset(&own)
			if _, err := w.Write([]byte(wrong)); err != nil {
				t.Fatal(err)
			}
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		}
		files["index.html.gz"] = own.String()
		_, _, err = Build(t.Context(), newOptions(t, filetest.New(t, files)))
		if err == nil || !strings.Contains(err.Error(), "index.html.gz stands beside index.html") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAFileThatChangesMeanwhileIsNoticed(t *testing.T) {
	for name, size := range map[string]int{"a small one": 100, "a large one": readAhead + 100} {
		dir := filetest.New(t, map[string]string{"index.html": "x", "file.bin": string(noise(1, size))})
		s, err := scan(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		defer s.close()
		filetest.Write(t, filepath.Join(dir, "file.bin"), string(noise(2, size)))
		for _, g := range s.groups(siteDir) {
			err = g.writeTar(t.Context(), &bytes.Buffer{})
			if g.name == "assets" && (err == nil || !strings.Contains(err.Error(), "file.bin changed while the image was built")) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
