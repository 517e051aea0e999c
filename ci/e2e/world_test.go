package e2e

import (
	"crypto/rand"
	"fmt"
	"net"
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

// world is a registry and a Git remote of one test's own, each guarded by a
// canary: a password that must not turn up anywhere else.
type world struct {
	registryAddress, gitAddress   string
	registryPassword, gitToken    string
	registryDir, gitDir, manifest string
	// faults stand in front of the registry.
	faults *registry.Faults
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		registryPassword: "canary-registry-" + rand.Text(),
		gitToken:         "canary-git-" + rand.Text(),
		registryDir:      t.TempDir(),
		gitDir:           t.TempDir(),
	}
	images, err := registry.New(registry.Options{Root: w.registryDir, Username: "robot", Password: w.registryPassword})
	if err != nil {
		t.Fatal(err)
	}
	w.faults = registry.NewFaults(images)
	w.registryAddress = serve(t, w.faults)

	w.manifest = fmt.Sprintf(`# image: %[1]s:blog-comment stays
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
`, w.image())
	if err := gitserver.InitBare(t.Context(), w.repository(), "main"); err != nil {
		t.Fatal(err)
	}
	_, err = gitserver.Seed(t.Context(), w.repository(), "main", gitserver.Commit{Files: fstest.MapFS{
		manifestPath: &fstest.MapFile{Data: []byte(w.manifest), Mode: 0o644},
	}})
	if err != nil {
		t.Fatal(err)
	}
	repositories, err := gitserver.New(gitserver.Options{Root: w.gitDir, Token: w.gitToken})
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
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return "localhost:" + port
}

func (w *world) image() string { return w.registryAddress + "/me/blog" }

func (w *world) repository() string { return filepath.Join(w.gitDir, "gitops.git") }

// onRegistry and onGitOps are the arguments of a call that uses the world.
func (w *world) onRegistry() []string {
	return []string{
		"--image=" + w.image(), "--registry-username=robot", "--registry-password=env:CANARY_REGISTRY",
		"--registry-service=tcp://" + w.registryAddress,
	}
}

func (w *world) onGitOps() []string {
	return []string{
		"--gitops-url=http://" + w.gitAddress + "/gitops.git", "--manifest-path=" + manifestPath,
		"--git-token=env:CANARY_GIT", "--gitops-service=tcp://" + w.gitAddress,
	}
}

func (w *world) environment() []string {
	return []string{"CANARY_REGISTRY=" + w.registryPassword, "CANARY_GIT=" + w.gitToken}
}

// commits are the subjects of the GitOps repository's branch, newest first.
func (w *world) commits(t *testing.T, branch string) []string {
	t.Helper()
	out := gitIn(t, w.repository(), "log", "--format=%s", branch)
	return strings.Split(out, "\n")
}

func gitIn(t *testing.T, dir string, args ...string) string {
	t.Helper()
	out, err := git.Runner{Dir: dir}.Run(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out)
}

// newBlog is a clean working tree with this repository's blog and one commit at
// a fixed time.
func newBlog(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "blog"), os.DirFS(filepath.Join(root(t), "blog"))); err != nil {
		t.Fatal(err)
	}
	// What Hugo left in the checkout is ignored there; here it would be
	// committed.
	for _, made := range []string{"public", "resources", ".hugo_build.lock"} {
		if err := os.RemoveAll(filepath.Join(dir, "blog", made)); err != nil {
			t.Fatal(err)
		}
	}
	gitIn(t, dir, "init", "--quiet", "--initial-branch=main")
	commitAll(t, dir, "Write the blog")
	return dir
}

func commitAll(t *testing.T, dir, subject string) string {
	t.Helper()
	gitIn(t, dir, "add", "--all")
	runner := git.Runner{Dir: dir, Env: []string{
		"GIT_AUTHOR_NAME=Author", "GIT_AUTHOR_EMAIL=author@example.com", "GIT_AUTHOR_DATE=2026-01-02T03:04:05Z",
		"GIT_COMMITTER_NAME=Author", "GIT_COMMITTER_EMAIL=author@example.com", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z",
	}}
	if _, err := runner.Run(t.Context(), "commit", "--quiet", "--message="+subject); err != nil {
		t.Fatal(err)
	}
	return gitIn(t, dir, "rev-parse", "HEAD")
}

// root is this repository's working tree.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
