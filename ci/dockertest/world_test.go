//go:build linux

package dockertest

import (
	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"tazlab.net/castle/ci/git"
	"tazlab.net/castle/ci/gitserver"
	"tazlab.net/castle/ci/registry"
)

const manifestPath = "apps/base/hugo-blog/hugo-blog.yaml"

// world is a registry and a Git remote on this machine's loopback address.
type world struct {
	registryAddress, gitAddress string
	password, token             string
	gitFolder                   string
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{password: rand.Text(), token: rand.Text(), gitFolder: t.TempDir()}
	blobs, err := registry.New(registry.Options{Root: t.TempDir(), Username: "robot", Password: w.password})
	if err != nil {
		t.Fatal(err)
	}
	w.registryAddress = serve(t, blobs)
	if err := gitserver.InitBare(t.Context(), w.repository(), "main"); err != nil {
		t.Fatal(err)
	}
	manifest := fmt.Sprintf("apiVersion: v1\nkind: Pod\nmetadata: {name: hugo-blog}\nspec:\n  containers:\n    - name: hugo-blog\n      image: %s:blog-0000000\n", w.image())
	if _, err := gitserver.Seed(t.Context(), w.repository(), "main", gitserver.Commit{Files: fstest.MapFS{
		manifestPath: &fstest.MapFile{Data: []byte(manifest), Mode: 0o644},
	}}); err != nil {
		t.Fatal(err)
	}
	repositories, err := gitserver.New(gitserver.Options{Root: w.gitFolder, Token: w.token})
	if err != nil {
		t.Fatal(err)
	}
	w.gitAddress = serve(t, repositories)
	return w
}

func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return strings.Replace(server.Listener.Addr().String(), "127.0.0.1", "localhost", 1)
}

func (w *world) image() string      { return w.registryAddress + "/me/blog" }
func (w *world) repository() string { return filepath.Join(w.gitFolder, "gitops.git") }

// arguments are those of a call that uses the world.
func (w *world) arguments() []string {
	return []string{
		"--image=" + w.image(), "--registry-username=robot", "--registry-password=env:REGISTRY_PASSWORD",
		"--registry-service=tcp://" + w.registryAddress,
		"--gitops-url=http://" + w.gitAddress + "/gitops.git", "--manifest-path=" + manifestPath,
		"--git-token=env:GITOPS_TOKEN", "--gitops-service=tcp://" + w.gitAddress,
	}
}

func (w *world) environment() []string {
	return []string{"REGISTRY_PASSWORD=" + w.password, "GITOPS_TOKEN=" + w.token}
}

// digestAt asks the registry for a tag's digest; there is none for a missing tag.
func (w *world) digestAt(t *testing.T, tag string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodHead, "http://"+w.registryAddress+"/v2/me/blog/manifests/"+tag, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth("robot", w.password)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.Header.Get("Docker-Content-Digest")
}

// newSite is a clean working tree of a Hugo site with two pages.
func newSite(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	for file, text := range map[string]string{
		"hugo.yaml":         "baseURL: https://blog.example.com/\ntitle: Two pages\ndisableKinds: [taxonomy, term, RSS]\n",
		"layouts/all.html":  "<!doctype html>\n<html lang=en>\n<title>{{ .Title }}</title>\n{{ .Content }}\n",
		"layouts/404.html":  "<!doctype html>\n<html lang=en>\n<title>Not found</title>\n",
		"content/_index.md": "---\ntitle: Home\n---\nSee [the other page](/other/).\n",
		"content/other.md":  "---\ntitle: Other\n---\nSome words.\n",
	} {
		path := filepath.Join(folder, file)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	gitIn(t, folder, "init", "--quiet", "--initial-branch=main")
	gitIn(t, folder, "add", "--all")
	gitIn(t, folder, "-c", "user.name=Author", "-c", "user.email=author@example.com", "commit", "--quiet", "--message=Write two pages")
	return folder
}

func gitIn(t *testing.T, folder string, args ...string) string {
	t.Helper()
	out, err := git.Runner{Dir: folder}.Run(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}
