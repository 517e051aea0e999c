package imagepush

import (
	"tazlab.net/castle/ci/base/registry/registrytest"

	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"

	"tazlab.net/castle/ci/base/registry"
	"tazlab.net/castle/ci/publish/siteimage/ocilayout"
)

const (
	username = "robot"
	password = "canary-p4ss/word+1"
)

// world is a registry that asks for credentials, behind faults, behind a record of its requests.
type world struct {
	*registrytest.Faults
	url string

	mu       sync.Mutex
	requests []string                                                   // "PUT /v2/…"
	before   func(w http.ResponseWriter, r *http.Request) (served bool) // may be set by a test
}

func newWorld(t *testing.T, faults ...registrytest.Fault) *world {
	t.Helper()
	h, err := registry.New(registry.Options{Root: t.TempDir(), Username: username, Password: password})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{Faults: registrytest.NewFaults(h, faults...)}
	server := httptest.NewServer(w)
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

func (w *world) ServeHTTP(rw http.ResponseWriter, r *http.Request) {
	w.mu.Lock()
	w.requests = append(w.requests, r.Method+" "+r.URL.Path)
	before := w.before
	w.mu.Unlock()
	if before != nil && before(rw, r) {
		return
	}
	w.Faults.ServeHTTP(rw, r)
}

func (w *world) host() string { return strings.TrimPrefix(w.url, "http://") }

// access has short pauses, so that a test of many attempts is quick.
func (w *world) access() Access {
	return Access{
		Username: username, Password: password, Pause: time.Millisecond, Timeout: 20 * time.Second,
	}
}

func (w *world) options(layout, tag string) Options {
	return Options{Access: w.access(), Reference: w.host() + "/team/blog:" + tag, Layout: layout}
}

// writes are the requests so far that change the registry.
func (w *world) writes() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var writes []string
	for _, request := range w.requests {
		if !strings.HasPrefix(request, "GET ") && !strings.HasPrefix(request, "HEAD ") {
			writes = append(writes, request)
		}
	}
	return writes
}

func (w *world) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.requests = nil
}

func newImage(t *testing.T) v1.Image {
	t.Helper()
	image, err := random.Image(200_000, 3)
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

func digestOf(t *testing.T, artifact ocilayout.Artifact) string {
	t.Helper()
	digest, err := artifact.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest.String()
}

func mustPush(t *testing.T, o Options) Result {
	t.Helper()
	result, err := Push(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// mustHave checks what the registry holds under a tag; "" is nothing.
func (w *world) mustHave(t *testing.T, tag, digest string) {
	t.Helper()
	w.mu.Lock()
	w.before = nil
	w.mu.Unlock()
	got, err := Lookup(t.Context(), w.access(), w.host()+"/team/blog:"+tag)
	if got != digest || (err == nil) != (digest != "") {
		t.Errorf("%s is %q (%v), want %q", tag, got, err, digest)
	}
}
