package gosdk

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// made is the image on top of one with some variables and an entry point.
func made(t *testing.T) v1.Image {
	t.Helper()
	base, err := random.Image(100, 2)
	if err != nil {
		t.Fatal(err)
	}
	base, err = mutate.Config(base, v1.Config{Env: []string{"GOTOOLCHAIN=auto", "PATH=/usr/local/go/bin"}, Entrypoint: []string{"/bin/sh"}})
	if err != nil {
		t.Fatal(err)
	}
	codegen := filepath.Join(t.TempDir(), "codegen")
	if err := os.WriteFile(codegen, []byte("program"), 0o755); err != nil {
		t.Fatal(err)
	}
	caches, err := random.Layer(100, types.OCILayer)
	if err != nil {
		t.Fatal(err)
	}
	image, err := Image(base, codegen, caches)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func TestTheImageHasTheGeneratorAndTheCachesOnTopOfTheToolchain(t *testing.T) {
	image := made(t)
	layers, err := image.Layers()
	if err != nil || len(layers) != 4 {
		t.Errorf("got %d layers (%v), want the base's two and two more", len(layers), err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"PATH=/usr/local/go/bin", "GOPATH=/go", "GOTOOLCHAIN=local", "CGO_ENABLED=0"}; !slices.Equal(config.Config.Env, want) {
		t.Errorf("got %q, want %q", config.Config.Env, want)
	}
	if len(config.Config.Entrypoint) > 0 {
		t.Errorf("the entry point is still %q", config.Config.Entrypoint)
	}
}

func TestAnImageWithoutItsCodeGeneratorIsAnError(t *testing.T) {
	if _, err := Image(empty.Image, filepath.Join(t.TempDir(), "nowhere"), nil); err == nil {
		t.Error("got no error")
	}
}
