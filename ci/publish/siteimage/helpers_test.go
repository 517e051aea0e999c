package siteimage

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"tazlab.net/castle/ci/publish/site/siteheaders"
)

var commitTime = time.Date(2026, 3, 1, 12, 30, 0, 0, time.FixedZone("CET", 3600))

// newBase is an image as nginx's is, with one layer of the given media type.
func newBase(t testing.TB, architecture string, mediaType types.MediaType) v1.Image {
	t.Helper()
	image, err := mutate.AppendLayers(empty.Image, static.NewLayer([]byte("a layer of the base"), mediaType))
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", architecture
	config.History = []v1.History{{CreatedBy: "the base's own step"}}
	config.Config = v1.Config{
		Entrypoint: []string{"/docker-entrypoint.sh"}, Cmd: []string{"nginx"}, Env: []string{"PATH=/usr/sbin:/usr/bin"},
		ExposedPorts: map[string]struct{}{"80/tcp": {}},
		Labels:       map[string]string{"maintainer": "upstream", "org.opencontainers.image.source": "upstream's"},
	}
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	return image
}

func newOptions(t testing.TB, site string) Options {
	t.Helper()
	return Options{
		Base: newBase(t, "amd64", types.DockerLayer), Site: site, Created: commitTime, CacheDir: t.TempDir(),
		Headers: siteheaders.StrictHeaders(),
		Title:   "blog", Revision: strings.Repeat("ab", 20), Source: "https://example.org/blog.git", BaseName: "docker.io/library/nginx:1.30.5",
	}
}

func mustBuild(t testing.TB, o Options) (v1.Image, Report) {
	t.Helper()
	image, report, err := Build(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return image, report
}

// text is n bytes of compressible text that depends on seed.
func text(seed string, n int) string {
	var b strings.Builder
	for i := 0; b.Len() < n; i++ {
		fmt.Fprintf(&b, "<p>%s says sentence %d.</p>\n", seed, i)
	}
	return b.String()[:n]
}

// prose is n bytes of words that no other text has; compression halves it.
func prose(seed string, n int) string {
	sum := sha256.Sum256([]byte(seed))
	source := rand.NewChaCha8(sum)
	var b strings.Builder
	for b.Len() < n {
		fmt.Fprintf(&b, "%x ", source.Uint64())
	}
	return b.String()[:n]
}

// smallSite is a site with two languages and one of everything.
func smallSite() map[string]string {
	return map[string]string{
		"index.html": text("home", 2000), "index.xml": text("feed", 3000), "sitemap.xml": text("map", 900), "robots.txt": "User-agent: *\n",
		"404.html": "<p>not here</p>", "it/404.html": "<p>non qui</p>", "it/index.html": text("casa", 1500),
		"articles/index.html": text("list", 1200), "articles/one/index.html": text("one", 2500), "articles/two/index.html": text("two", 2600),
		"articles/one/cover_hu_0123456789abcdef.webp": string(noise(1, 3000)), "articles/one/data.json": text("data", 800),
		"css/main.min." + strings.Repeat("0a", 32) + ".css": text("style", 4000), "favicon.svg": text("icon", 700), "tags/go/index.html": text("tag", 600),
		"font.woff2": string(noise(2, 5000)), "empty.txt": "", "Übersicht/index.html": text("umlaut", 600),
	}
}

// noise is n bytes that no compression shortens.
func noise(seed uint64, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(b)
	return b
}

// pages is a site of n pages in a section, with the lists that go with them.
func pages(n, size int) map[string]string {
	files := map[string]string{"index.html": text("home", 2000), "index.xml": text("feed", 9000), "articles/index.html": text("list", 9000)}
	for i := range n {
		files[fmt.Sprintf("articles/page-%d/index.html", i)] = text(fmt.Sprint("page ", i), size)
	}
	return files
}

// entry is a file or folder of a layer.
type entry struct {
	tar.Header
	content string
	layer   string
}

// entries returns what our layers hold, by name; the layers of the base are left out.
func entries(t testing.TB, image v1.Image, report Report) map[string]entry {
	t.Helper()
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]entry{}
	for i, l := range layers {
		if strings.HasPrefix(report.Layers[i].Name, "base") {
			continue
		}
		r, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		for archive := tar.NewReader(r); ; {
			header, err := archive.Next()
			if errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			content, err := io.ReadAll(archive)
			if err != nil {
				t.Fatal(err)
			}
			if old, ok := found[header.Name]; ok && header.Typeflag == tar.TypeReg {
				t.Errorf("%s is in the layers %s and %s", header.Name, old.layer, report.Layers[i].Name)
			}
			found[header.Name] = entry{*header, string(content), report.Layers[i].Name}
		}
		r.Close()
	}
	return found
}

// digests returns the digests of our layers by their names.
func digests(report Report) map[string]string {
	byName := map[string]string{}
	for _, l := range report.Layers {
		byName[l.Name] = l.Digest
	}
	return byName
}
