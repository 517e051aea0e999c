//go:build linux

package world

import (
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-containerregistry/pkg/v1/empty"

	"tazlab.net/castle/ci/base/registry"
)

func TestAnImageIsPulledFromTheWorldsRegistryOnlyWhereItIsThere(t *testing.T) {
	handler, err := registry.New(registry.Options{Root: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	at := netip.MustParseAddrPort(server.Listener.Addr().String())
	files := fstest.MapFS{
		"apps/blog.yaml": {Data: []byte("# image: " + at.String() + "/blog:by-hand\ncontainers:\n  - image: \"" + at.String() + "/blog:1\" # one line\n  - name: b\n    image: " + at.String() +
			"/sidecar:2\n  - image: ghcr.io/someone/else:3\n")},
		"README.md": {Data: []byte("nothing\n")},
	}
	for range 2 { // the second time, they are there
		if err := pushFirst(t.Context(), at, empty.Image, files); err != nil {
			t.Fatal(err)
		}
	}
	for image, want := range map[string]string{
		at.String() + "/blog:1":       "",
		at.String() + "/sidecar:2":    "",
		at.String() + "/blog:by-hand": "/blog:by-hand: not found",
		at.String() + "/Blog:1":       "could not parse reference",
		"ghcr.io/someone/else:3":      "",
		"someone/else:3":              "",
		"registry.invalid/blog:1":     "lookup registry.invalid: no such host",
		"registry.invalid:5000/b:1":   "lookup registry.invalid: no such host",
	} {
		err := exists(t.Context(), at, image)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "failed to pull and unpack image \""+image)) {
			t.Errorf("%s: %v, want %q", image, err, want)
		}
	}
	server.Close()
	if err := exists(t.Context(), at, at.String()+"/blog:1"); err == nil || !strings.Contains(err.Error(), "failed to do request") {
		t.Errorf("a registry that is gone: %v", err)
	}
}
