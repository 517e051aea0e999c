package e2e

import (
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/filetest"
	"tazlab.net/castle/ci/base/registry"
	"tazlab.net/castle/ci/test/needs"
	"tazlab.net/castle/ci/test/release"
	"tazlab.net/castle/ci/test/world"
)

// A release names an image with castle's programs in it. Who uses it compiles nothing, whichever way the module comes to
// them: by its address, as a dependency of their own module, or as a toolchain.

// newRelease publishes the image and serves the module that names it.
func newRelease(t *testing.T) (module string) {
	t.Helper()
	handler, err := registry.New(registry.Options{Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	// Where a name is a loopback address, the engine speaks HTTP.
	image := strings.Replace(strings.TrimPrefix(server.URL, "http://"), "127.0.0.1", "localhost", 1) + "/me/castle"
	published := mustCall(t, nil, "image", "publish", "--address="+image+":v1.0.0")
	return serveModule(t, func(clone string) {
		if err := release.NameImage(clone, published); err != nil {
			t.Fatal(err)
		}
	})
}

func TestAReleaseCompilesNothing(t *testing.T) {
	needs.Most(t)
	module := newRelease(t)
	w := world.New(t)
	source := newSites(t, w)
	publish := append([]string{"publish-blog", "--site=wiki", "--dry-run"}, w.Services()...)
	published := func(t *testing.T, done outcome, tag string) {
		t.Helper()
		if done.err != nil || !strings.Contains(done.stdout, w.Image()+":"+tag) {
			t.Fatalf("%v\n%s\n%s", done.err, done.stdout, done.stderr)
		}
		if strings.Contains(done.stderr, "-o /program") {
			t.Errorf("a program was compiled:\n%s", done.stderr)
		}
	}

	t.Run("for the blog of the example, which has a castle.yaml and ten lines of workflow", func(t *testing.T) {
		settings, err := release.Blog{GitOps: w.GitOpsURL(), Manifest: world.ManifestPath, Image: w.Image(), User: "robot"}.Settings(root(t))
		if err != nil {
			t.Fatal(err)
		}
		const page = "<!doctype html><html lang=en><head><meta charset=utf-8><title>{{ .Title }}</title></head><body>{{ .Content }}</body></html>\n"
		blog := newSite(t, map[string]string{
			"castle.yaml":         settings,
			"hugo.toml":           "baseURL = 'https://me.example.org/'\ntitle = 'Mine'\ndisableKinds = ['taxonomy']\n",
			"content/_index.md":   "---\ntitle: Home\n---\nSome words.\n",
			"layouts/home.html":   page,
			"layouts/single.html": page,
		})
		done := daggerIn(t, blog, w.Environment(), append([]string{"-m", module, "call", "--progress=plain", "publish-blog", "--source=."}, w.Services()...)...)
		tag := "blog-" + world.Git(t, blog, "rev-parse", "--short=7", "HEAD")
		published(t, done, tag)
		if w.DigestAt(t, tag) == "" || !strings.Contains(w.ManifestOn(t, "main"), w.Image()+":"+tag) {
			t.Errorf("%s is not in the registry, or not in the manifest:\n%s", tag, w.ManifestOn(t, "main"))
		}
	})
	t.Run("called by its address", func(t *testing.T) {
		published(t, daggerIn(t, source, w.Environment(), append([]string{"-m", module, "call", "--progress=plain"}, append(publish, "--source=.")...)...), "wiki-")
	})
	t.Run("as a toolchain, which sees the caller's files only", func(t *testing.T) {
		filetest.Write(t, filepath.Join(source, "dagger.json"), `{"name": "sites", "engineVersion": "v0.19.10"}`)
		if local := localImages(t); local != "" {
			filetest.Write(t, filepath.Join(source, localImagesFile), local)
		}
		if done := daggerIn(t, source, nil, "toolchain", "install", module); done.err != nil {
			t.Fatalf("%v\n%s", done.err, done.stderr)
		}
		world.CommitAll(t, source, "Take castle as a toolchain")
		published(t, daggerIn(t, source, w.Environment(), append([]string{"call", "--progress=plain", "castle"}, publish...)...), "wiki-")
	})

	t.Run("as a dependency of the caller's own module", func(t *testing.T) {
		own := t.TempDir()
		filetest.Write(t, filepath.Join(own, "dagger.json"), `{"name": "pipeline", "engineVersion": "v0.19.10", "sdk": {"source": "go"}}`)
		if done := daggerIn(t, own, nil, "install", module); done.err != nil {
			t.Fatalf("%v\n%s", done.err, done.stderr)
		}
		filetest.Write(t, filepath.Join(own, "main.go"), ownModule)
		done := daggerIn(t, own, nil, "call", "--progress=plain", "wiki", "--source="+source)
		if done.err != nil || !strings.Contains(done.stdout, "links checked") || strings.Contains(done.stderr, "-o /program") {
			t.Errorf("%v\n%s\n%s", done.err, done.stdout, done.stderr)
		}
	})
}

// ownModule calls castle as Go code does.
const ownModule = `package main

import (
	"context"

	"dagger/pipeline/internal/dagger"
)

type Pipeline struct{}

func (m *Pipeline) Wiki(ctx context.Context, source *dagger.Directory) (string, error) {
	return dag.Castle().CheckBlog(ctx, dagger.CastleCheckBlogOpts{Source: source, Site: "wiki"})
}
`
