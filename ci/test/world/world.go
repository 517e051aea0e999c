// Package world is a registry and a Git remote for one test that publishes into them by `dagger call`; it is for tests
// only, and listens on loopback addresses alone.
package world

import (
	"tazlab.net/castle/ci/base/registry/registrytest"

	"crypto/rand"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"tazlab.net/castle/ci/base/git"
	"tazlab.net/castle/ci/base/gitserver"
	"tazlab.net/castle/ci/base/porttest"
	"tazlab.net/castle/ci/base/registry"
)

// ManifestPath is where the GitOps repository names the image.
const ManifestPath = "apps/base/hugo-blog/hugo-blog.yaml"

// World is a registry and a Git remote, each guarded by a canary: a password that must not turn up anywhere else.
type World struct {
	RegistryPassword, GitToken string
	// RegistryDir and GitDir are the folders that hold everything.
	RegistryDir, GitDir string
	// Manifest is what the GitOps repository begins with.
	Manifest string
	// Faults stand in front of the registry.
	Faults *registrytest.Faults

	registryAddress, gitAddress string
}

// New starts a world that ends with the test.
func New(t *testing.T) *World {
	t.Helper()
	w := &World{
		RegistryPassword: "canary-registry-" + rand.Text(),
		GitToken:         "canary-git-" + rand.Text(),
		RegistryDir:      t.TempDir(),
		GitDir:           t.TempDir(),
	}
	images, err := registry.New(registry.Options{Root: w.RegistryDir, Username: "robot", Password: w.RegistryPassword})
	if err != nil {
		t.Fatal(err)
	}
	w.Faults = registrytest.NewFaults(images)
	w.registryAddress = serve(t, w.Faults)

	w.Manifest = fmt.Sprintf(`# image: %[1]s:blog-comment stays
apiVersion: apps/v1
kind: Deployment
metadata: {name: hugo-blog}
spec:
  template:
    spec:
      containers:
        - name: hugo-blog
          image: '%[1]s:blog-0000000'   # one line
        - name: sidecar
          image: %[1]s-sidecar:blog-0000000
`, w.Image())
	if err := gitserver.InitBare(t.Context(), w.Repository(), "main"); err != nil {
		t.Fatal(err)
	}
	_, err = gitserver.Seed(t.Context(), w.Repository(), "main", gitserver.Commit{Files: fstest.MapFS{
		ManifestPath: &fstest.MapFile{Data: []byte(w.Manifest), Mode: 0o644},
	}})
	if err != nil {
		t.Fatal(err)
	}
	repositories, err := gitserver.New(gitserver.Options{Root: w.GitDir, Token: w.GitToken})
	if err != nil {
		t.Fatal(err)
	}
	w.gitAddress = serve(t, repositories)
	return w
}

func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	// In a container of its engine, Dagger has a listener at a port that the kernel gave away, and what is forwarded from the same one cannot be.
	server := &httptest.Server{Listener: porttest.Listen(t, "127.0.0.1"), Config: &http.Server{Handler: handler}}
	server.Start()
	t.Cleanup(server.Close)
	return strings.Replace(server.Listener.Addr().String(), "127.0.0.1", "localhost", 1)
}

// Image is the image's repository.
func (w *World) Image() string { return w.registryAddress + "/me/blog" }

// Repository is the GitOps repository's bare folder.
func (w *World) Repository() string { return filepath.Join(w.GitDir, "gitops.git") }

// GitOpsURL is the GitOps repository's address.
func (w *World) GitOpsURL() string { return "http://" + w.gitAddress + "/gitops.git" }

// Services are the arguments that let a call into registry and GitOps repository where castle.yaml says the rest.
func (w *World) Services() []string {
	return []string{
		"--registry-password=env:CANARY_REGISTRY", "--registry-service=tcp://" + w.registryAddress,
		"--git-token=env:CANARY_GIT", "--gitops-service=tcp://" + w.gitAddress,
	}
}

// OnRegistry are the arguments of a call that uses the registry.
func (w *World) OnRegistry() []string {
	return []string{
		"--image=" + w.Image(), "--registry-username=robot", "--registry-password=env:CANARY_REGISTRY",
		"--registry-service=tcp://" + w.registryAddress,
	}
}

// OnGitOps are the arguments of a call that uses the GitOps repository.
func (w *World) OnGitOps() []string {
	return []string{
		"--gitops-url=" + w.GitOpsURL(), "--manifest-path=" + ManifestPath,
		"--git-token=env:CANARY_GIT", "--gitops-service=tcp://" + w.gitAddress,
	}
}

// Environment are the variables that those arguments name.
func (w *World) Environment() []string {
	return []string{"CANARY_REGISTRY=" + w.RegistryPassword, "CANARY_GIT=" + w.GitToken}
}

// ManifestOn is the manifest on a branch, without the last line's end.
func (w *World) ManifestOn(t *testing.T, branch string) string {
	t.Helper()
	return Git(t, w.Repository(), "show", branch+":"+ManifestPath)
}

// Commits are the subjects of a branch of the GitOps repository, newest first.
func (w *World) Commits(t *testing.T, branch string) []string {
	t.Helper()
	return strings.Split(Git(t, w.Repository(), "log", "--format=%s", branch), "\n")
}

// DigestAt asks the registry for a tag's digest; it is empty for a missing tag.
func (w *World) DigestAt(t *testing.T, tag string) string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodHead, "http://"+w.registryAddress+"/v2/me/blog/manifests/"+tag, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.SetBasicAuth("robot", w.RegistryPassword)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	return response.Header.Get("Docker-Content-Digest")
}

// CommitAll commits everything in a working tree, by the same author at the same time, and returns the commit.
func CommitAll(t *testing.T, dir, subject string) string {
	t.Helper()
	Git(t, dir, "add", "--all")
	const when = "2026-01-02T03:04:05Z"
	runner := git.Runner{Dir: dir, Env: []string{
		"GIT_AUTHOR_NAME=Author", "GIT_AUTHOR_EMAIL=author@example.com", "GIT_AUTHOR_DATE=" + when,
		"GIT_COMMITTER_NAME=Author", "GIT_COMMITTER_EMAIL=author@example.com", "GIT_COMMITTER_DATE=" + when,
	}}
	if _, err := runner.Run(t.Context(), "commit", "--quiet", "--message="+subject); err != nil {
		t.Fatal(err)
	}
	return Git(t, dir, "rev-parse", "HEAD")
}

// Git runs git in a folder and returns what it printed, trimmed.
func Git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := git.Runner{Dir: dir}.Run(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}
