package mirror

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"

	"tazlab.net/castle/ci/setup/images"
	"tazlab.net/castle/ci/test/needs"
)

// TestRealStandInsAreReproducibleAndRun makes the nginx stand-in of images.yaml twice, with nothing in common but the
// network. The others, which take minutes, come in with the end-to-end tests.
func TestRealStandInsAreReproducibleAndRun(t *testing.T) {
	needs.Slow(t)
	needs.FullRun(t, "makes real stand-ins", "a Debian machine with root, Go and a mirror")
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	all, err := images.Load("../../../.dagger/images.yaml")
	if err != nil {
		t.Fatal(err)
	}
	list := slices.DeleteFunc(all, func(i images.Image) bool {
		return i.StandIn != images.StandInNginx
	})
	// apt downloads as a user of its own where that user can enter, and as root where not.
	one, two := t.TempDir(), t.TempDir()
	if err := os.Chmod(filepath.Dir(two), 0o755); err != nil {
		t.Fatal(err)
	}
	one = filepath.Join(one, "closed")
	if err := os.Mkdir(one, 0o700); err != nil {
		t.Fatal(err)
	}
	var made [2][]Built
	for i, cache := range []string{one, two} {
		if made[i], err = Build(ctx, BuildOptions{Cache: cache, List: list}); err != nil {
			t.Fatal(err)
		}
		for _, built := range made[i] {
			t.Logf("%s: %s, %d MB, %s", built.Image.Key, built.Digest, built.Size/1e6, built.Took.Round(time.Millisecond))
		}
	}
	if !slices.Equal(digests(made[0]), digests(made[1])) {
		t.Errorf("first  %v\nsecond %v", digests(made[0]), digests(made[1]))
	}
	again, err := Build(ctx, BuildOptions{Cache: one, List: list})
	if err != nil {
		t.Fatal(err)
	}
	for _, built := range again {
		if built.Made {
			t.Errorf("%s was made again", built.Image.Key)
		}
	}
	for key, programs := range map[string]map[string]string{
		"nginx": {"nginx -v": "nginx version: nginx/1.", "cat /etc/nginx/mime.types": "text/html"},
	} {
		root := unpacked(t, ctx, pulled(t, one, byKey(t, list, key)))
		for line, want := range programs {
			command := exec.CommandContext(ctx, "/usr/bin/env", strings.Fields(line)...)
			command.Dir = "/"
			command.Env = []string{"PATH=" + debianPath}
			command.SysProcAttr = &syscall.SysProcAttr{Chroot: root}
			if output, err := command.CombinedOutput(); err != nil || !strings.Contains(string(output), want) {
				t.Errorf("%s: %s: %v\n%s", key, line, err, output)
			}
		}
	}
}

func byKey(t *testing.T, list images.List, key string) images.Image {
	t.Helper()
	image, err := list.Get(key)
	if err != nil {
		t.Fatal(err)
	}
	return image
}

// unpacked is a folder with the image's files, and with what a container runtime would add for programs to start.
func unpacked(t *testing.T, ctx context.Context, image v1.Image) string {
	t.Helper()
	root := t.TempDir()
	flat := mutate.Extract(image)
	defer flat.Close()
	untar := exec.CommandContext(ctx, "tar", "--extract", "--directory", root)
	untar.Stdin = flat
	if output, err := untar.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	if err := os.WriteFile(filepath.Join(root, "dev/null"), nil, 0o666); err != nil {
		t.Fatal(err)
	}
	return root
}
