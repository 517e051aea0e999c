//go:build linux

package docker

import (
	"archive/tar"
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"tazlab.net/castle/ci/setup/gotool"
	"tazlab.net/castle/ci/test/needs"
)

// TestTalosIsUnpackedFromItsImage, of which a small one has the name here, and found again without Docker.
func TestTalosIsUnpackedFromItsImage(t *testing.T) {
	needs.Most(t)
	endToEnd(t)
	newDaemon(t)
	recipe, err := gotool.Load("talos")
	if err != nil {
		t.Fatal(err)
	}
	var content bytes.Buffer
	archive := tar.NewWriter(&content)
	if err := archive.AddFS(fstest.MapFS{
		"usr/bin/init": {Data: []byte("Talos"), Mode: 0o755},
		"sbin":         {Data: []byte("usr/bin"), Mode: fs.ModeSymlink},
		"dev":          {Mode: fs.ModeDir | 0o755},
	}); err != nil {
		t.Fatal(err)
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	load := exec.CommandContext(t.Context(), "docker", "import", `--change=ENTRYPOINT ["/sbin/init"]`, "-", "ghcr.io/siderolabs/talos:"+recipe.Version)
	load.Stdin = &content
	if said, err := load.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}

	cache := t.TempDir()
	unpack := func() string {
		t.Helper()
		var refused strings.Builder
		script := exec.CommandContext(t.Context(), filepath.Join("..", "..", "..", "scripts", "talos-image.sh"), cache)
		script.Stderr = &refused
		folder, err := script.Output()
		if err != nil {
			t.Fatalf("%v\n%s", err, refused.String())
		}
		return strings.TrimSpace(string(folder))
	}
	folder := unpack()
	if init, err := os.ReadFile(filepath.Join(folder, "sbin", "init")); err != nil || string(init) != "Talos" {
		t.Errorf("its first program is %q, %v", init, err)
	}
	if devices, err := os.ReadDir(filepath.Join(folder, "dev")); err != nil || len(devices) > 0 {
		t.Errorf("it has the devices %v, %v", devices, err)
	}
	if left := docker(t, "ps", "--all", "--quiet"); left != "" {
		t.Errorf("containers are left: %s", left)
	}
	if there, err := filepath.Glob(filepath.Join(cache, "talos-image", "*")); err != nil || len(there) != 1 || there[0] != folder {
		t.Errorf("the cache has %v, %v", there, err)
	}

	t.Setenv("DOCKER_HOST", "unix://"+filepath.Join(cache, "nobody.sock"))
	if again := unpack(); again != folder {
		t.Errorf("without Docker it is %s, not %s", again, folder)
	}
}
