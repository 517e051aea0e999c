package publish

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"tazlab.net/castle/ci/base/git"
	"tazlab.net/castle/ci/base/gitserver"
	"tazlab.net/castle/ci/base/registry"
	"tazlab.net/castle/ci/publish/gitops"
	"tazlab.net/castle/ci/publish/imagepush"
	"tazlab.net/castle/ci/publish/manifest"
	"tazlab.net/castle/ci/publish/siteimage/ocilayout"
	"tazlab.net/castle/ci/publish/worktree"
)

const (
	manifestPath = "apps/base/hugo-blog/hugo-blog.yaml"

	// The canaries must turn up nowhere but in the memory of who uses them.
	// They hold characters that a URL, a form and base64 write differently.
	registryPassword = "canary-7c2e-registry/+&"
	gitToken         = "canary-4f1d-git/+&"
)

// world is a registry behind faults and a Git server, both on loopback, both
// guarded, both writing down what they are asked.
type world struct {
	*registry.Faults
	registryDir, gitDir string
	registryHost        string
	gitURL              string

	mu sync.Mutex
	// events are "registry METHOD path" when a request was answered and
	// "git METHOD path" when one came in, in their order.
	events []string
	// answer may answer a request for the registry in its place.
	answer func(http.ResponseWriter, *http.Request) (answered bool)
}

func newWorld(t *testing.T, faults ...registry.Fault) *world {
	t.Helper()
	w := &world{registryDir: t.TempDir(), gitDir: t.TempDir()}
	images, err := registry.New(registry.Options{Root: w.registryDir, Username: "robot", Password: registryPassword})
	if err != nil {
		t.Fatal(err)
	}
	w.Faults = registry.NewFaults(images, faults...)
	w.registryHost = strings.TrimPrefix(serve(t, http.HandlerFunc(w.serveRegistry)), "http://")

	if err := gitserver.InitBare(t.Context(), w.bare(), "main"); err != nil {
		t.Fatal(err)
	}
	w.git(t, "config", "core.fsync", "none")
	w.commitByHand(t, "Add the blog", fmt.Sprintf(`# was image: %[1]s:blog-by-hand
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
`, w.image()))
	repositories, err := gitserver.New(gitserver.Options{Root: w.gitDir, Token: gitToken})
	if err != nil {
		t.Fatal(err)
	}
	w.gitURL = serve(t, http.HandlerFunc(func(rw http.ResponseWriter, r *http.Request) {
		w.note("git " + r.Method + " " + r.URL.RequestURI())
		repositories.ServeHTTP(rw, r)
	})) + "/tazlab-k8s.git"
	return w
}

func serve(t *testing.T, handler http.Handler) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func (w *world) serveRegistry(rw http.ResponseWriter, r *http.Request) {
	defer w.note("registry " + r.Method + " " + r.URL.Path)
	w.mu.Lock()
	answer := w.answer
	w.mu.Unlock()
	if answer != nil && answer(rw, r) {
		return
	}
	w.Faults.ServeHTTP(rw, r)
}

func (w *world) note(event string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events = append(w.events, event)
}

func (w *world) setAnswer(answer func(http.ResponseWriter, *http.Request) bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answer = answer
}

// takeEvents returns what happened since the last call.
func (w *world) takeEvents() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	events := w.events
	w.events = nil
	return events
}

func (w *world) bare() string { return filepath.Join(w.gitDir, "tazlab-k8s.git") }

func (w *world) image() string { return w.registryHost + "/me/blog" }

func (w *world) repository() gitops.Repository {
	return gitops.Repository{URL: w.gitURL, Branch: "main", Credentials: git.Credentials{Token: gitToken}}
}

// access has short pauses and few attempts, so that a registry that stays
// broken is given up soon.
func (w *world) access() imagepush.Access {
	return imagepush.Access{Username: "robot", Password: registryPassword, Pause: time.Millisecond, Tries: 3, Timeout: 20 * time.Second}
}

// options publish an image as that of the commit that begins with the digits.
func (w *world) options(t *testing.T, digits string, image ocilayout.Artifact) Options {
	t.Helper()
	return Options{
		Commit:     commitOf(digits),
		Layout:     newLayout(t, image),
		Image:      w.image(),
		TagPrefix:  "blog-",
		Registry:   w.access(),
		Repository: w.repository(),
		Update:     gitops.UpdateRequest{Path: manifestPath},
	}
}

func (w *world) rollbackTo(commit string) RollbackOptions {
	return RollbackOptions{
		To: commit, Image: w.image(), Registry: w.access(),
		Repository: w.repository(), Update: gitops.UpdateRequest{Path: manifestPath},
	}
}

func (w *world) history(t *testing.T) History {
	t.Helper()
	entries, err := gitops.History(t.Context(), w.repository(), manifestPath, manifest.Selector{Image: w.image()}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return History(entries)
}

func (w *world) git(t *testing.T, args ...string) string {
	t.Helper()
	out, err := git.Runner{Dir: w.bare()}.Run(t.Context(), args...)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(out, "\n")
}

// commitByHand commits the manifest past the server, as a person would.
func (w *world) commitByHand(t *testing.T, message, content string) {
	t.Helper()
	_, err := gitserver.Seed(t.Context(), w.bare(), "main", gitserver.Commit{
		Message: message, Author: "Some Person <person@example.org>",
		Files: fstest.MapFS{manifestPath: &fstest.MapFile{Data: []byte(content), Mode: 0o644}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (w *world) manifest(t *testing.T) string {
	t.Helper()
	return w.git(t, "show", "main:"+manifestPath)
}

func (w *world) tip(t *testing.T) string {
	t.Helper()
	return w.git(t, "rev-parse", "main")
}

// mustStay runs an action and makes sure that no push was even begun and that
// the branch is where it was.
func (w *world) mustStay(t *testing.T, action func()) {
	t.Helper()
	before := w.git(t, "for-each-ref")
	w.takeEvents()
	action()
	if after := w.git(t, "for-each-ref"); after != before {
		t.Errorf("the GitOps repository changed from\n%s\nto\n%s", before, after)
	}
	for _, event := range w.takeEvents() {
		if isGitPush(event) {
			t.Errorf("a push was begun: %s", event)
		}
	}
}

func isGitPush(event string) bool {
	return strings.HasPrefix(event, "git ") && strings.Contains(event, "git-receive-pack")
}

func isRegistryWrite(event string) bool {
	return strings.HasPrefix(event, "registry ") && !strings.HasPrefix(event, "registry GET") && !strings.HasPrefix(event, "registry HEAD")
}

func mustHaveNone(t *testing.T, events []string, is func(string) bool) {
	t.Helper()
	if i := slices.IndexFunc(events, is); i >= 0 {
		t.Errorf("there was %q in\n%s", events[i], strings.Join(events, "\n"))
	}
}

func mustRun(t *testing.T, o Options) Result {
	t.Helper()
	result, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// commitOf is the commit whose name begins with 7 digits.
func commitOf(digits string) worktree.Commit {
	return worktree.Commit{
		SHA: digits + strings.Repeat("0", 40-len(digits)), Short: digits, Subject: "Write about " + digits,
		Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), RemoteURL: "https://example.org/blog.git",
	}
}

func newImage(t *testing.T) v1.Image {
	t.Helper()
	image, err := random.Image(20_000, 2)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func newLayout(t *testing.T, artifact ocilayout.Artifact) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "layout")
	if err := ocilayout.Write(dir, artifact); err != nil {
		t.Fatal(err)
	}
	return dir
}

func digestOf(t *testing.T, artifact remote.Taggable) string {
	t.Helper()
	digest, err := artifact.(interface{ Digest() (v1.Hash, error) }).Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

// mustSay makes sure that an error is there and names what a person needs.
func mustSay(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatal("there was no error")
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("no %q in: %v", word, err)
		}
	}
}
