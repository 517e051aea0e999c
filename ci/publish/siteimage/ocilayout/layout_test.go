package ocilayout

import (
	"archive/tar"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

func newTestImage(t *testing.T, architecture string) v1.Image {
	t.Helper()
	image, err := random.Image(2048, 2)
	if err != nil {
		t.Fatal(err)
	}
	config, err := image.ConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", architecture
	if image, err = mutate.ConfigFile(image, config); err != nil {
		t.Fatal(err)
	}
	return image
}

func newIndex(images ...v1.Image) v1.ImageIndex {
	index := v1.ImageIndex(empty.Index)
	for _, image := range images {
		index = mutate.AppendManifests(index, mutate.IndexAddendum{Add: image})
	}
	return index
}

func digestOf(t *testing.T, artifact interface{ Digest() (v1.Hash, error) }) v1.Hash {
	t.Helper()
	digest, err := artifact.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// checkSame compares digests and reads all layers.
func checkSame(t *testing.T, got, want v1.Image) {
	t.Helper()
	if got, want := digestOf(t, got), digestOf(t, want); got != want {
		t.Errorf("image %s, want %s", got, want)
	}
	layers, err := got.Layers()
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range layers {
		r, err := l.Compressed()
		if err != nil {
			t.Fatal(err)
		}
		digest, _, err := v1.SHA256(r)
		r.Close()
		if err != nil || digest != digestOf(t, l) {
			t.Errorf("layer %s reads as %s (%v)", digestOf(t, l), digest, err)
		}
	}
}

// pack writes a folder as a tar file, each name after prefix.
func pack(t *testing.T, dir, prefix string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "layout.tar")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	w := tar.NewWriter(f)
	err = filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: prefix + rel, Mode: 0o644, Size: int64(len(content))}); err != nil {
			return err
		}
		_, err = w.Write(content)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWhatWasWrittenIsReadAgain(t *testing.T) {
	image := newTestImage(t, "amd64")
	for name, artifact := range map[string]Artifact{"image": image, "index": newIndex(image, newTestImage(t, "arm64"))} {
		dir := filepath.Join(t.TempDir(), "new")
		if err := Write(dir, artifact); err != nil {
			t.Fatal(err)
		}
		got, err := Read(dir)
		if err != nil {
			t.Fatal(err)
		}
		if digestOf(t, got) != digestOf(t, artifact) {
			t.Errorf("%s %s, want %s", name, digestOf(t, got), digestOf(t, artifact))
		}
		if _, isIndex := got.(v1.ImageIndex); isIndex != (name == "index") {
			t.Errorf("%s came back as %T", name, got)
		}
		if err := Write(dir, artifact); err == nil || !strings.Contains(err.Error(), "not empty") {
			t.Errorf("a second write: %v", err)
		}
	}
}

func TestALayoutWithTwoArtifactsIsRefused(t *testing.T) {
	dir := t.TempDir()
	if err := Write(dir, newTestImage(t, "amd64")); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "index.json")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.LastIndex(string(text), "]")
	start := strings.Index(string(text), "[") + 1
	twice := string(text[:at]) + "," + string(text[start:])
	if err := os.WriteFile(path, []byte(twice), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "2 artifacts") {
		t.Errorf("got %v", err)
	}
	if _, err := Read(t.TempDir()); err == nil {
		t.Error("an empty folder: no error")
	}
}

func TestAnImageIsOpenedFromAFolderAndFromATarFileOfIt(t *testing.T) {
	image := newTestImage(t, "amd64")
	dir := t.TempDir()
	if err := Write(dir, image); err != nil {
		t.Fatal(err)
	}
	for name, path := range map[string]string{"folder": dir, "tar": pack(t, dir, ""), "tar with ./": pack(t, dir, "./")} {
		t.Run(name, func(t *testing.T) {
			for _, platform := range []string{"", "linux/amd64"} {
				got, err := Image(path, platform)
				if err != nil {
					t.Fatal(err)
				}
				checkSame(t, got, image)
			}
		})
	}
}

func TestAnImageIsChosenByPlatform(t *testing.T) {
	amd, arm := newTestImage(t, "amd64"), newTestImage(t, "arm64")
	dir := t.TempDir()
	if err := Write(dir, newIndex(amd, arm)); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, pack(t, dir, "")} {
		got, err := Image(path, "linux/arm64")
		if err != nil {
			t.Fatal(err)
		}
		checkSame(t, got, arm)
		if _, err := Image(path, ""); err == nil || !strings.Contains(err.Error(), "linux/amd64, linux/arm64") {
			t.Errorf("no platform: %v", err)
		}
		if _, err := Image(path, "linux/s390x"); err == nil || !strings.Contains(err.Error(), "it has linux/amd64, linux/arm64") {
			t.Errorf("a platform that is not there: %v", err)
		}
	}
}

func TestAnAttestationBesideAnImageIsNoSecondImage(t *testing.T) {
	image := newTestImage(t, "amd64")
	index := mutate.AppendManifests(newIndex(image), mutate.IndexAddendum{
		Add: newTestImage(t, ""), Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "unknown", Architecture: "unknown"}},
	})
	dir := t.TempDir()
	if err := Write(dir, index); err != nil {
		t.Fatal(err)
	}
	got, err := Image(dir, "")
	if err != nil {
		t.Fatal(err)
	}
	checkSame(t, got, image)
}

func TestAnImageIsOpenedFromADockerArchive(t *testing.T) {
	image := newTestImage(t, "amd64")
	path := filepath.Join(t.TempDir(), "docker.tar")
	if err := tarball.WriteToFile(path, name.MustParseReference("nginx:1.30.5"), image); err != nil {
		t.Fatal(err)
	}
	got, err := Image(path, "linux/amd64")
	if err != nil {
		t.Fatal(err)
	}
	if config, err := got.ConfigName(); err != nil || config.String() == "" {
		t.Errorf("configuration %s (%v)", config, err)
	}
	layers, err := got.Layers()
	if err != nil || len(layers) != 2 {
		t.Fatalf("%d layers (%v)", len(layers), err)
	}
	for _, l := range layers {
		r, err := l.Uncompressed()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, r); err != nil {
			t.Error(err)
		}
		r.Close()
	}
	if _, err := Image(path, "linux/arm64"); err == nil || !strings.Contains(err.Error(), "it has linux/amd64") {
		t.Errorf("another platform: %v", err)
	}
}

func TestWhatIsNoImageIsRefusedByName(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("no tar file"), 0o644); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(dir, "other")
	if err := os.Mkdir(other, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(other, "file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		text: "not a tar file", other: "index.json is missing", pack(t, other, ""): "neither an OCI layout", filepath.Join(dir, "missing"): "no such file",
	} {
		if _, err := Image(path, ""); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}

func TestALayoutWithAMissingBlobIsRefused(t *testing.T) {
	dir := t.TempDir()
	image := newTestImage(t, "amd64")
	if err := Write(dir, image); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(dir, "blobs", "sha256", digestOf(t, image).Hex)); err != nil {
		t.Fatal(err)
	}
	if _, err := Image(dir, ""); err == nil || !strings.Contains(err.Error(), "missing") {
		t.Errorf("got %v", err)
	}
}
