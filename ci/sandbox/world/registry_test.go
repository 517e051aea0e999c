//go:build linux

package world

import (
	"net/http/httptest"
	"net/netip"
	"testing"
	"testing/fstest"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"tazlab.net/castle/ci/base/registry"
)

func TestTheWorldsRegistryBeginsWithWhatTheRepositoryNames(t *testing.T) {
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
	for _, there := range []string{"/blog:1", "/sidecar:2"} {
		reference, err := name.ParseReference(at.String() + there)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := remote.Head(reference); err != nil {
			t.Error(err)
		}
	}
}
