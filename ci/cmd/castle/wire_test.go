package main

import (
	"bytes"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"tazlab.net/castle/ci/base/registry"
	"tazlab.net/castle/ci/setup"
	"tazlab.net/castle/ci/setup/daggerengine"
	"tazlab.net/castle/ci/setup/images"
	"tazlab.net/castle/ci/setup/mirror"
)

// newHost has the project's list, in a folder of its own, and a mirror with a stand-in for nginx.
func newHost(t *testing.T) (h *host, local string) {
	t.Helper()
	folder := t.TempDir()
	h = &host{cache: filepath.Join(folder, "cache"), images: filepath.Join(folder, "images.yaml"), mirror: mirrorAlways}
	text, err := os.ReadFile("../../../.dagger/images.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(h.images, text, 0o644); err != nil {
		t.Fatal(err)
	}
	list, err := h.list()
	if err != nil {
		t.Fatal(err)
	}
	nginx, err := list.Get("nginx")
	if err != nil {
		t.Fatal(err)
	}
	handler, err := registry.New(registry.Options{Root: filepath.Join(h.mirrorCache(), "registry")})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(handler)
	defer server.Close()
	standIn, err := random.Image(10, 1)
	if err == nil {
		standIn, err = mutate.ConfigFile(standIn, standInFor(t, standIn, nginx))
	}
	if err != nil {
		t.Fatal(err)
	}
	at, err := name.NewTag(strings.TrimPrefix(server.URL, "http://") + "/" + nginx.Repository() + ":" + nginx.Tag)
	if err == nil {
		err = remote.Write(at, standIn)
	}
	if err != nil {
		t.Fatal(err)
	}
	return h, filepath.Join(folder, images.LocalFile)
}

func standInFor(t *testing.T, made v1.Image, image images.Image) *v1.ConfigFile {
	t.Helper()
	config, err := made.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", "arm64"
	config.Config.Labels = map[string]string{mirror.LabelStandIn: image.Reference()}
	return config
}

func TestACloneThatMadeNoStandInsIsToldOfThem(t *testing.T) {
	h, local := newHost(t)
	if err := h.pin(t.Context(), setup.Plan{Kind: setup.Built}, daggerengine.Engine{}, io.Discard); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(local); err != nil || !strings.Contains(string(text), "\nnginx:\n    for: docker.io/library/nginx:") {
		t.Errorf("%v, got\n%s", err, text)
	}
}

func TestNothingIsPinnedToAMirrorThatIsNotUsed(t *testing.T) {
	h, local := newHost(t)
	if err := os.WriteFile(local, []byte("nginx: {}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	// An engine that is not castle's own may have a mirror.
	var log bytes.Buffer
	if err := h.pin(t.Context(), setup.Plan{Kind: setup.Docker}, daggerengine.Engine{}, &log); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(local); err != nil || string(text) != "nginx: {}\n" || !strings.Contains(log.String(), local) {
		t.Errorf("%v, the file has %q, said was %q", err, text, log.String())
	}
	h.mirror = mirrorNever
	if err := h.pin(t.Context(), setup.Plan{Kind: setup.Built}, daggerengine.Engine{}, io.Discard); err != nil {
		t.Fatal(err)
	}
	if exists(local) {
		t.Error("the module would ask the real registries for stand-ins")
	}
}
