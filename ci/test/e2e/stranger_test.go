package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/filetest"
	"tazlab.net/castle/ci/base/gitserver"
	"tazlab.net/castle/ci/publish/report"
	"tazlab.net/castle/ci/test/needs"
	"tazlab.net/castle/ci/test/world"
)

// A stranger has a repository of their own, with two sites and a castle.yaml, and knows the module by its address only.

// newSites is such a repository; only the wiki is one that the world's manifest names.
func newSites(t *testing.T, w *world.World) string {
	t.Helper()
	files := map[string]string{
		"castle.yaml": fmt.Sprintf(`gitops:
  url: %s
  author: {name: A Stranger, email: stranger@example.org}
registry: {username: robot}
sites:
  blog: {path: sites/blog, image: registry.example.org/me/blog, manifest: apps/blog.yaml}
  wiki: {path: sites/wiki, image: %s, tagPrefix: wiki-, manifest: %s, headers: strict, port: 8080}
`, w.GitOpsURL(), w.Image(), world.ManifestPath),
	}
	for _, site := range []string{"blog", "wiki"} {
		at := "sites/" + site + "/"
		files[at+"hugo.toml"] = fmt.Sprintf("baseURL = 'https://%s.example.org/'\ntitle = '%s'\ndisableKinds = ['taxonomy']\n", site, site)
		files[at+"content/_index.md"] = "---\ntitle: Home\n---\nSome words.\n"
		files[at+"layouts/home.html"] = "<!doctype html><html lang=en><head><meta charset=utf-8><title>{{ .Title }}</title>" +
			"<link rel=canonical href='{{ .Permalink }}'></head><body><h1>{{ .Title }} of the " + site + "</h1>{{ .Content }}</body></html>\n"
	}
	return newSite(t, files)
}

// serveModule serves this module's repository over HTTP, and returns its address with the commit to call. What this
// machine's mirror holds is in it, which Git ignores otherwise: a stranger's engine reaches the images' own registries.
func serveModule(t *testing.T, change func(clone string)) string {
	t.Helper()
	if !ownEngine() {
		t.Skip("NOT RUN: only an engine on this machine reaches a Git remote on its loopback address")
	}
	remotes := t.TempDir()
	clone := filepath.Join(remotes, "clone")
	world.Git(t, remotes, "clone", "--quiet", root(t), clone)
	world.Git(t, clone, "checkout", "--quiet", "-B", "main") // a working tree as CI has it stands on no branch, and a commit on none is not cloned
	if text := localImages(t); text != "" {
		filetest.Write(t, filepath.Join(clone, localImagesFile), text)
		world.Git(t, clone, "add", "--force", localImagesFile)
	}
	change(clone)
	if world.Git(t, clone, "status", "--porcelain") != "" {
		world.CommitAll(t, clone, "Release")
	}
	world.Git(t, remotes, "clone", "--quiet", "--bare", clone, "castle.git")
	server, err := gitserver.New(gitserver.Options{Root: remotes, Token: "unused", AnonymousRead: true})
	if err != nil {
		t.Fatal(err)
	}
	// The engine leaves the port out of a module's address, so that another run of these tests needs another address.
	var listener net.Listener
	for last := 77; last < 100; last++ {
		if listener, err = net.Listen("tcp", fmt.Sprintf("127.0.0.%d:80", last)); err == nil {
			break
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewUnstartedServer(server)
	web.Listener = listener
	web.Start()
	t.Cleanup(web.Close)
	return web.URL + "/castle.git@" + world.Git(t, clone, "rev-parse", "HEAD")
}

const localImagesFile = ".dagger/images.local.yaml"

// localImages is what this machine's mirror holds in place of images; mostly nothing.
func localImages(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), localImagesFile))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	return string(text)
}

func TestAStrangersRepositoryPublishesByItsOwnSettings(t *testing.T) {
	needs.Most(t)
	w := world.New(t)
	source := newSites(t, w)
	sha := world.Git(t, source, "rev-parse", "HEAD")
	on := []string{"-m", serveModule(t, func(string) {}), "call", "--progress=plain"}
	of := func(args ...string) outcome {
		return daggerIn(t, source, w.Environment(), append(on[:len(on):len(on)], args...)...)
	}

	t.Run("the module's own repository is not published", func(t *testing.T) {
		done := of("publish-blog", "--dry-run")
		if done.err == nil || !strings.Contains(done.stderr, "add --source .") {
			t.Errorf("%v\n%s", done.err, done.stderr)
		}
	})
	t.Run("nor looked at, nor are its clusters", func(t *testing.T) {
		for flag, args := range map[string][]string{
			"--source":     {"check-gitops"},
			"--repository": {"validate"},
		} {
			if done := of(args...); done.err == nil || !strings.Contains(done.stderr, "its own repository is not yours; add "+flag+" .") {
				t.Errorf("%v: %v\n%s", args, done.err, done.stderr)
			}
		}
		done := of("destroy", "--cluster=sandbox", "--confirm=sandbox")
		if done.err == nil || !strings.Contains(done.stderr, "add --repository .") {
			t.Errorf("%v\n%s", done.err, done.stderr)
		}
	})
	t.Run("one of two sites is to be named", func(t *testing.T) {
		done := of("publish-blog", "--source=.")
		if done.err == nil || !strings.Contains(done.stderr, "say which with --site (blog, wiki)") {
			t.Errorf("%v\n%s", done.err, done.stderr)
		}
	})
	t.Run("the named one is published", func(t *testing.T) {
		done := of(append([]string{"publish-blog", "--source=.", "--site=wiki", "--format=JSON"}, w.Services()...)...)
		var result report.Result
		if err := json.Unmarshal([]byte(done.stdout), &result); done.err != nil || err != nil {
			t.Fatalf("%v, %v\n%s", done.err, err, done.stderr)
		}
		if want := w.Image() + ":wiki-" + sha[:7]; result.GitOps.Image != want || !strings.Contains(w.ManifestOn(t, "main"), want) {
			t.Errorf("the manifest names %s, want %s:\n%s", result.GitOps.Image, want, w.ManifestOn(t, "main"))
		}
		if author := world.Git(t, w.Repository(), "log", "-1", "--format=%an <%ae>", "main"); author != "A Stranger <stranger@example.org>" {
			t.Errorf("the commit is by %s", author)
		}
	})
	t.Run("a pipeline says what its steps share once", func(t *testing.T) {
		done := of(append(append([]string{"site", "--source=.", "--name=wiki"}, w.Services()...), "history")...)
		if done.err != nil || !strings.Contains(done.stdout, "wiki-"+sha[:7]) {
			t.Errorf("%v\n%s\n%s", done.err, done.stdout, done.stderr)
		}
	})
	t.Run("what neither castle.yaml nor a flag names is told", func(t *testing.T) {
		bare := newSite(t, map[string]string{"hugo.toml": "title = 'Bare'\n"})
		done := daggerIn(t, bare, nil, append(on[:len(on):len(on)], "publish-blog", "--source=.")...)
		for _, part := range []string{"or give --image", "or give --gitops-url", "or give --manifest-path"} {
			if done.err == nil || !strings.Contains(done.stderr, part) {
				t.Errorf("no %q (%v) in\n%s", part, done.err, done.stderr)
			}
		}
	})
	t.Run("a call that fails has its report, too", func(t *testing.T) {
		done := of("publish-blog", "--source=.", "--format=JSON")
		var report struct {
			Failed   bool
			Error    string
			ExitCode int
		}
		_, text, _ := strings.Cut(done.stderr, "\nStdout:\n")
		if err := json.Unmarshal([]byte(text), &report); done.err == nil || err != nil || !report.Failed || !strings.Contains(report.Error, "--site") || report.ExitCode != 1 {
			t.Errorf("%v, %v: %+v in\n%s", done.err, err, report, done.stderr)
		}
	})
}
