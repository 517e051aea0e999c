// Package publishtest is the world that publishing is tested in: a registry, a GitOps repository and a cluster.
package publishtest

import (
	"tazlab.net/castle/ci/base/registry/registrytest"

	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"tazlab.net/castle/ci/base/git"
	"tazlab.net/castle/ci/base/gitserver"
	"tazlab.net/castle/ci/base/registry"
	"tazlab.net/castle/ci/publish/gitops"
)

// ManifestPath is the manifest in the GitOps repository.
const ManifestPath = "apps/base/hugo-blog/hugo-blog.yaml"

// The canaries must turn up nowhere but in the memory of who uses them. They hold characters that a URL, a form and
// base64 write differently.
const (
	RegistryPassword = "canary-7c2e-registry/+&"
	GitToken         = "canary-4f1d-git/+&"
)

// World is a registry behind faults and a Git server, both on loopback, both guarded, both writing down what they are
// asked.
type World struct {
	*registrytest.Faults
	RegistryDir, GitDir string // their folders
	RegistryHost        string // host:port
	gitURL              string

	mu sync.Mutex
	// events are "registry METHOD path" when a request was answered and "git METHOD path" when one came in, in their
	// order.
	events []string
	// answer may answer a request for the registry in its place.
	answer func(http.ResponseWriter, *http.Request) (answered bool)
}

// New starts a world whose manifest names the image with the tag blog-0000000.
func New(t *testing.T, faults ...registrytest.Fault) *World {
	t.Helper()
	w := &World{RegistryDir: t.TempDir(), GitDir: t.TempDir()}
	images, err := registry.New(registry.Options{Root: w.RegistryDir, Username: "robot", Password: RegistryPassword})
	if err != nil {
		t.Fatal(err)
	}
	w.Faults = registrytest.NewFaults(images, faults...)
	w.RegistryHost = strings.TrimPrefix(serve(t, http.HandlerFunc(w.serveRegistry)), "http://")

	if err := gitserver.InitBare(t.Context(), w.Bare(), "main"); err != nil {
		t.Fatal(err)
	}
	w.Git(t, "config", "core.fsync", "none")
	w.CommitByHand(t, "Add the blog", fmt.Sprintf(`# was image: %[1]s:blog-by-hand
apiVersion: apps/v1
kind: Deployment
metadata: {name: hugo-blog}
spec:
  template:
    spec:
      containers:
        - name: hugo-blog
          image: "%[1]s:blog-0000000" # the tag
        - name: sidecar
          image: %[1]s-sidecar:blog-0000000
`, w.Image()))
	repositories, err := gitserver.New(gitserver.Options{Root: w.GitDir, Token: GitToken})
	if err != nil {
		t.Fatal(err)
	}
	w.gitURL = serve(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.note("git " + r.Method + " " + r.URL.RequestURI())
		repositories.ServeHTTP(rw, r)
	})) + "/me/tazlab-k8s.git"
	return w
}

func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func (w *World) serveRegistry(rw http.ResponseWriter, r *http.Request) {
	defer w.note("registry " + r.Method + " " + r.URL.Path)
	w.mu.Lock()
	answer := w.answer
	w.mu.Unlock()
	if answer != nil && answer(rw, r) {
		return
	}
	w.Faults.ServeHTTP(rw, r)
}

func (w *World) note(event string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, event)
}

// SetAnswer has requests for the registry answered in its place.
func (w *World) SetAnswer(answer func(http.ResponseWriter, *http.Request) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = answer
}

// TakeEvents returns what happened since the last call.
func (w *World) TakeEvents() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	events := w.events
	w.events = nil
	return events
}

// Bare is the GitOps repository's folder.
func (w *World) Bare() string { return filepath.Join(w.GitDir, "me", "tazlab-k8s.git") }

// Image is the image's repository.
func (w *World) Image() string { return w.RegistryHost + "/me/blog" }

// Repository is the GitOps repository as publishing is told it.
func (w *World) Repository() gitops.Repository {
	return gitops.Repository{URL: w.gitURL, Branch: "main", Credentials: git.Credentials{Token: GitToken}}
}

// Git runs git in the GitOps repository and returns what it printed.
func (w *World) Git(t *testing.T, args ...string) string {
	t.Helper()
	out, err := git.Runner{Dir: w.Bare()}.Run(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(out, "\n")
}

// CommitByHand commits the manifest past the server, as a person would.
func (w *World) CommitByHand(t *testing.T, message, content string) {
	t.Helper()
	_, err := gitserver.Seed(t.Context(), w.Bare(), "main", gitserver.Commit{
		Message: message, Author: "Some Person <person@example.org>",
		Files: fstest.MapFS{ManifestPath: &fstest.MapFile{Data: []byte(content), Mode: 0o644}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Manifest is the manifest on the main branch.
func (w *World) Manifest(t *testing.T) string {
	t.Helper()
	return w.Git(t, "show", "main:"+ManifestPath)
}

// Tip is the newest commit of the main branch.
func (w *World) Tip(t *testing.T) string {
	t.Helper()
	return w.Git(t, "rev-parse", "main")
}
