package debian

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/test/needs"
)

// needsMachine keeps tests that make real roots (root rights, a Debian mirror, half a minute each) out of a quick run.
// Where all tests are required, as in CI, a machine that cannot run them fails them.
func needsMachine(t *testing.T) {
	t.Helper()
	needs.FullRun(t, "makes a real Debian root", "a Debian machine with root and a mirror")
	if problems := thisHost().unfitForRoot(); len(problems) > 0 {
		needs.Missing(t, "this machine cannot make a Debian root: %s", strings.Join(problems, "; "))
	}
}

func TestARealRootHoldsItsPackagesAndTellsTheirVersions(t *testing.T) {
	needs.Slow(t)
	needsMachine(t)
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	folder := t.TempDir()
	dest := filepath.Join(folder, "root.tar")
	versions, err := Root(ctx, dest, []string{"ca-certificates"}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if versions["ca-certificates"] == "" || versions["dpkg"] == "" || versions["perl"] != "" {
		t.Errorf("versions: %v", versions)
	}
	file, err := os.Open(dest)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	names := map[string]bool{}
	for r := tar.NewReader(file); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		names[h.Name] = true
		if !h.ModTime.Equal(time.Unix(Epoch, 0)) {
			t.Errorf("%s has the time %s", h.Name, h.ModTime)
		}
		if h.Typeflag == tar.TypeChar || h.Typeflag == tar.TypeBlock {
			t.Errorf("%s is a device", h.Name)
		}
	}
	for _, name := range []string{"etc/ssl/certs/ca-certificates.crt", "usr/bin/dash", "tmp/", "dev/", "bin"} {
		if !names[name] {
			t.Errorf("no %s", name)
		}
	}
	for _, name := range []string{"etc/resolv.conf", "etc/hostname", "etc/apt/sources.list"} {
		if names[name] {
			t.Errorf("%s is there", name)
		}
	}
	onlyFile(t, folder, "root.tar")
}

// watcher closes said when mmdebstrap says a line that holds text.
type watcher struct {
	text string
	said chan struct{}
	seen string
}

func (w *watcher) Write(p []byte) (int, error) {
	before := strings.Contains(w.seen, w.text)
	w.seen += string(p)
	if !before && strings.Contains(w.seen, w.text) {
		close(w.said)
	}
	return len(p), nil
}

func TestACancelledRootLeavesNothing(t *testing.T) {
	needsMachine(t)
	for _, moment := range []string{"running apt-get update", "installing essential packages"} {
		t.Run(moment, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
			defer cancel()
			folder := t.TempDir()
			w := &watcher{text: moment, said: make(chan struct{})}
			go func() {
				select {
				case <-w.said:
					cancel()
				case <-ctx.Done():
				}
			}()
			if _, err := Root(ctx, filepath.Join(folder, "root.tar"), nil, Options{Log: w}); !errors.Is(err, context.Canceled) {
				t.Errorf("got %v", err)
			}
			onlyFile(t, folder, "")
			mounts, err := os.ReadFile("/proc/self/mountinfo")
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(mounts), folder) {
				t.Error("a mount is left")
			}
		})
	}
}

// onlyFile expects the folder to hold this file and nothing else; "" expects an empty folder.
func onlyFile(t *testing.T, folder, name string) {
	t.Helper()
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if entry.Name() != name {
			t.Errorf("%s is left", entry.Name())
		}
	}
}
