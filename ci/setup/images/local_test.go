package images

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestTheLocalFileStandsBesideTheListAndSaysWhatItsRowsAreFor(t *testing.T) {
	list := filepath.Join(t.TempDir(), "images.yaml")
	golang := Image{Key: "golang", Name: "docker.io/library/golang", Tag: "1.26.4-bookworm", Digest: "sha256:aaaa"}
	local := Local{
		"nginx":  {For: "docker.io/library/nginx:1.30.5", Digest: "sha256:cccc"},
		"golang": {For: golang.Pinned(), Digest: "sha256:bbbb"},
	}
	if err := local.WriteBeside(list); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(filepath.Dir(list), LocalFile)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	// This is the form that .dagger/images.go reads.
	rows := `golang:
    for: docker.io/library/golang:1.26.4-bookworm@sha256:aaaa
    digest: sha256:bbbb
nginx:
    for: docker.io/library/nginx:1.30.5
    digest: sha256:cccc
`
	if head, got, _ := strings.Cut(string(text), "golang:"); "golang:"+got != rows || strings.TrimLeft(head, "#") == head {
		t.Errorf("got\n%s", text)
	}

	before, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := local.WriteBeside(list); err != nil {
		t.Fatal(err)
	}
	if after, err := os.Stat(file); err != nil || !os.SameFile(before, after) {
		t.Errorf("a file that says the same was written again (%v)", err)
	}
	delete(local, "nginx")
	if err := local.WriteBeside(list); err != nil {
		t.Fatal(err)
	}
	if text, _ := os.ReadFile(file); strings.Contains(string(text), "nginx") {
		t.Errorf("what the mirror holds no more is still there:\n%s", text)
	}
}

func TestWithoutAnythingToSayThereIsNoLocalFile(t *testing.T) {
	list := filepath.Join(t.TempDir(), "images.yaml")
	file := filepath.Join(filepath.Dir(list), LocalFile)
	for range 2 { // with a file, and without one
		if err := (Local{}).WriteBeside(list); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(file); !errors.Is(err, fs.ErrNotExist) {
			t.Fatalf("it is there: %v", err)
		}
		if err := os.WriteFile(file, []byte("golang: {}\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// byTag are the images that are pulled by tag, for want of a digest. Whoever adds one, or learns a digest, changes the
// line.
const byTag = "engine kube-apiserver kube-controller-manager kube-scheduler metallb-controller external-secrets " +
	"helm-controller"

func TestTheImagesThatArePulledByTagAreKnown(t *testing.T) {
	list, err := Load("../../../.dagger/images.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, image := range list {
		if image.Digest == "" {
			keys = append(keys, image.Key)
		}
	}
	if got := strings.Join(keys, " "); got != byTag {
		t.Errorf("images without a digest: %s\nknown are:               %s", got, byTag)
	}
}
