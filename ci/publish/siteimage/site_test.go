package siteimage

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/klauspost/compress/gzip"
)

func TestPathsTellWhatChangesHowOften(t *testing.T) {
	want := map[string]kind{
		"index.html": index, "index.xml": index, "sitemap.xml": index, "robots.txt": index, "404.html": index, "about.html": index,
		"it/index.html": index, "it/sitemap.xml": index, "it/404.html": page, "articles/index.html": index, "articles/page/2/index.html": index,
		"articles/one/index.html": page, "articles/one/data.json": page, "articles/one/cover.png": asset, "articles/ugly.html": page,
		"it/articoli/uno/index.html": page, "it/articoli/index.html": index, "notes/index.html": index, "notes/index.xml": index,
		"tags/index.html": index, "tags/go/index.html": index, "it/tags/go/index.html": index, "zh-Hans/categories/x/index.html": index,
		"etiketten/tags/index.html": page, "css/main.css": asset, "FONT.WOFF2": asset, "PAGE/x/INDEX.HTML": page, "feed.rss": asset,
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
	for amount, want := range map[int64]uint32{0: 1, 255: 1, 256: 4, 2047: 4, 2048: 16, 10000: 16, 40000: 32} {
		if got := shardsFor(amount, pageSteps, maxPageShards); got != want {
			t.Errorf("%d pages: %d shards, want %d", amount, got, want)
		}
	}
	for amount, want := range map[int64]uint32{0: 1, 16<<20 - 1: 1, 16 << 20: 4, 1 << 30: 16} {
		if got := shardsFor(amount, assetSteps, maxAssetShards); got != want {
			t.Errorf("%d bytes: %d shards, want %d", amount, got, want)
		}
	}
}

func TestShardsAreOfSimilarSize(t *testing.T) {
	var s site
	for name := range pages(2500, 1) {
		s.files = append(s.files, file{path: name})
	}
	groups := s.groups()
	if len(groups) != 17 {
		t.Fatalf("%d layers, want 16 of pages and the indexes", len(groups))
	}
	for _, g := range groups[:16] {
		if n := len(g.files); n < 100 || n > 220 {
			t.Errorf("%s has %d of 2500 pages", g.name, n)
		}
	}
}

func TestALinkInsideTheSiteIsFollowedAndOneOutOfItRefused(t *testing.T) {
	dir := writeSite(t, smallSite())
	link(t, "articles/one/index.html", filepath.Join(dir, "latest.html"))
	o := newOptions(t, dir)
	image, report := mustBuild(t, o)
	if e := entries(t, image, report)["srv/www/latest.html"]; e.content != smallSite()["articles/one/index.html"] {
		t.Errorf("latest.html has %d bytes", len(e.content))
	}
	secret := filepath.Join(t.TempDir(), "secret")
	writeFile(t, secret, "secret")
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
	dir := writeSite(t, smallSite())
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Build(t.Context(), newOptions(t, dir)); err == nil || !strings.Contains(err.Error(), "pipe is neither a file nor a folder") {
		t.Errorf("got %v", err)
	}
}

func TestAFolderThatIsNoSiteIsRefused(t *testing.T) {
	o := newOptions(t, writeSite(t, map[string]string{"public/index.html": "x"}))
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
	image, report := mustBuild(t, newOptions(t, writeSite(t, files)))
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
		_, _, err = Build(t.Context(), newOptions(t, writeSite(t, files)))
		if err == nil || !strings.Contains(err.Error(), "index.html.gz stands beside index.html") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAFileThatChangesMeanwhileIsNoticed(t *testing.T) {
	for name, size := range map[string]int{"a small one": 100, "a large one": readAhead + 100} {
		dir := writeSite(t, map[string]string{"index.html": "x", "file.bin": string(noise(1, size))})
		s, err := scan(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		defer s.close()
		writeFile(t, filepath.Join(dir, "file.bin"), string(noise(2, size)))
		for _, g := range s.groups() {
			err = g.writeTar(t.Context(), &bytes.Buffer{})
			if g.name == "assets" && (err == nil || !strings.Contains(err.Error(), "file.bin changed while the image was built")) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
