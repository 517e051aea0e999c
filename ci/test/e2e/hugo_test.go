package e2e

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"tazlab.net/castle/ci/publish/report"
	"tazlab.net/castle/ci/publish/site/hugoversion"
	"tazlab.net/castle/ci/setup/images"
	"tazlab.net/castle/ci/test/needs"
	"tazlab.net/castle/ci/test/world"
)

// otherHugo is a version of Hugo that is not castle's own and has an image where the engine pulls from. Building a stand-in
// takes minutes, which no other test needs: "make test-hugo" does it.
const otherHugo = "CASTLE_OTHER_HUGO"

func TestASiteIsBuiltWithTheHugoThatItNames(t *testing.T) {
	needs.Most(t)
	other := os.Getenv(otherHugo)
	if other == "" {
		needs.LeftTo(t, "make test-hugo") // which builds another version
	}
	list, err := images.Load("../../../.dagger/images.yaml")
	if err != nil {
		t.Fatal(err)
	}
	own, err := list.Get("hugo")
	if err != nil {
		t.Fatal(err)
	}
	w := world.New(t)
	for _, c := range []struct {
		title      string
		file, text string // what names the version
		want       hugoversion.Choice
		pushed     bool
	}{
		{"nobody names one", "README.md", "A site.\n", hugoversion.Choice{Version: strings.TrimPrefix(own.Tag, "v"), From: hugoversion.Default}, true},
		{"castle.yaml", "castle.yaml", "sites: {blog: {hugo: " + other + "}}\n", hugoversion.Choice{Version: other, From: "castle.yaml"}, true},
		{".hugo-version", ".hugo-version", "v" + other + "\n", hugoversion.Choice{Version: other, From: ".hugo-version"}, false},
		{"the site's configuration", "config/_default/module.toml", "[hugoVersion]\nmax = '" + other + "'\n",
			hugoversion.Choice{Version: other, From: "module.hugoVersion.max of config/_default/module.toml"}, false},
	} {
		t.Run(c.title, func(t *testing.T) {
			source := newSite(t, map[string]string{
				c.file:               c.text,
				"hugo.toml":          "baseURL = 'https://example.org/'\ntitle = 'Versions'\ndisableKinds = ['taxonomy', 'term']\n",
				"layouts/index.html": "<!doctype html><html lang=en><head><meta charset=utf-8><title>{{ .Title }}</title>{{ hugo.Generator }}</head><body>{{ .Content }}</body></html>\n",
				"content/_index.md":  "---\ntitle: Home\n---\nSome words.\n",
			})
			args := []string{"--path=."}
			if !c.pushed {
				args = append(args, "--dry-run")
			}
			result := publishJSON(t, w, source, args...)
			if result.Hugo != c.want {
				t.Errorf("the report has %+v, want %+v", result.Hugo, c.want)
			}
			if c.pushed {
				mustBeBuiltWith(t, w, result, c.want)
			}
		})
	}
}

// mustBeBuiltWith looks at the image that was published: what its labels say, and what Hugo said of itself in a page.
func mustBeBuiltWith(t *testing.T, w *world.World, published report.Result, hugo hugoversion.Choice) {
	t.Helper()
	image := pulled(t, w, published)
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	labels := config.Config.Labels
	if version, from := labels["net.tazlab.castle.hugo.version"], labels["net.tazlab.castle.hugo.from"]; version != hugo.Version || from != hugo.From {
		t.Errorf("the labels name %q, from %q, want %+v", version, from, hugo)
	}
	if page := fileIn(t, image, "srv/www/index.html"); !strings.Contains(page, "Hugo "+hugo.Version) {
		t.Errorf("the page is not by Hugo %s:\n%s", hugo.Version, page)
	}
}

// pulled is the image that was published.
func pulled(t *testing.T, w *world.World, published report.Result) v1.Image {
	t.Helper()
	reference, err := name.ParseReference(w.Image() + "@" + published.Image.Digest)
	if err != nil {
		t.Fatal(err)
	}
	robot := remote.WithAuth(&authn.Basic{Username: "robot", Password: w.RegistryPassword})
	image, err := remote.Image(reference, remote.WithContext(t.Context()), robot)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// fileIn is the content of a file of an image.
func fileIn(t *testing.T, image v1.Image, file string) string {
	t.Helper()
	flat := mutate.Extract(image)
	defer flat.Close()
	for r := tar.NewReader(flat); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			t.Fatalf("the image has no %s", file)
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Name == file {
			text, err := io.ReadAll(r)
			if err != nil {
				t.Fatal(err)
			}
			return string(text)
		}
	}
}
