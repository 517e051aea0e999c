package daggerengine

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// madeImage is an image of programs that hold their own names.
func madeImage(t *testing.T) v1.Image {
	t.Helper()
	folder, programs := t.TempDir(), map[string]string{}
	for _, name := range []string{"engine", "dagger-init", "dial-stdio", "dnsname"} {
		programs[name] = filepath.Join(folder, name)
		if err := os.WriteFile(programs[name], []byte(name), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	sdk, err := random.Image(1000, 2)
	if err != nil {
		t.Fatal(err)
	}
	root, err := random.Layer(1000, types.OCILayer)
	if err != nil {
		t.Fatal(err)
	}
	image, err := assemble(root, sdk, programs, "v1.2.3")
	if err != nil {
		t.Fatal(err)
	}
	return image
}

func TestTheImageHoldsWhatTheEngineAndTheDaggerCLILookFor(t *testing.T) {
	image := madeImage(t)
	files := map[string]string{}
	unpacked := t.TempDir()
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, layer := range layers[1:] { // the root is random
		reader, err := layer.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		archive := tar.NewReader(reader)
		for {
			header, err := archive.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatal(err)
			}
			content, err := io.ReadAll(archive)
			if err != nil {
				t.Fatal(err)
			}
			files["/"+header.Name] = header.Linkname + string(content) // a link has a target, a file has content
			path := filepath.Join(unpacked, header.Name)
			if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, content, 0o644)); err != nil {
				t.Fatal(err)
			}
		}
		reader.Close()
	}
	for path, want := range map[string]string{
		"/usr/local/bin/dagger-engine":        "engine",
		"/usr/local/bin/dagger-init":          "dagger-init",
		"/usr/local/bin/runc":                 "/usr/sbin/runc",
		"/usr/bin/buildctl":                   "dial-stdio",
		"/opt/cni/bin/dnsname":                "dnsname",
		"/opt/cni/bin/bridge":                 "/usr/lib/cni/bridge",
		"/opt/cni/bin/firewall":               "/usr/lib/cni/firewall",
		"/opt/cni/bin/host-local":             "/usr/lib/cni/host-local",
		"/opt/cni/bin/loopback":               "/usr/lib/cni/loopback",
		"/usr/local/bin/dagger-entrypoint.sh": entrypoint,
		"/etc/dagger/engine.toml":             "",
	} {
		if got, there := files[path]; !there || got != want {
			t.Errorf("%s is %q (there: %t), want %q", path, got, there, want)
		}
	}

	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	_, named, _ := strings.Cut(config.Config.Env[len(config.Config.Env)-1], "DAGGER_GO_SDK_MANIFEST_DIGEST=")
	digest, err := v1.NewHash(named)
	if err != nil {
		t.Fatal(err)
	}
	blob := func(digest v1.Hash) []byte {
		content, err := os.ReadFile(filepath.Join(unpacked, imageContent, "blobs", digest.Algorithm, digest.Hex))
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := v1.SHA256(bytes.NewReader(content)); err != nil || got != digest {
			t.Errorf("the blob %s has the digest %s (%v)", digest, got, err)
		}
		return content
	}
	manifest, err := v1.ParseManifest(bytes.NewReader(blob(digest)))
	if err != nil {
		t.Fatal(err)
	}
	blob(manifest.Config.Digest)
	for _, layer := range manifest.Layers {
		blob(layer.Digest)
	}
	if len(manifest.Layers) != 2 {
		t.Errorf("the Go SDK's image has %d layers, want its two", len(manifest.Layers))
	}
}

func TestTheImageIsTheSameWhenItIsReadAgain(t *testing.T) {
	image := madeImage(t)
	layers, err := image.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, layer := range layers[1:] {
		want, err := layer.Digest()
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			reader, err := layer.Compressed()
			if err != nil {
				t.Fatal(err)
			}
			got, _, err := v1.SHA256(reader)
			if err != nil || got != want {
				t.Errorf("read %s (%v), want %s", got, err, want)
			}
			reader.Close()
		}
	}
}
