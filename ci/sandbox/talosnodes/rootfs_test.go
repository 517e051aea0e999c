//go:build linux

package talosnodes

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheOfficialImageIsTakenAsItIs but for its list of authorities and, where that is needed, the wrapper before its runc.
func TestTheOfficialImageIsTakenAsItIs(t *testing.T) {
	image, root, node := t.TempDir(), filepath.Join(t.TempDir(), "system"), filepath.Join(t.TempDir(), "castle-node")
	list := begins + strings.Repeat("\nall of them", 9) + ends
	for name, text := range map[string]string{
		"usr/bin/init": "Talos " + list, "usr/bin/runc": "its runc", "usr/bin/containerd": "its containerd", "opt/cni/bin/flannel": "its flannel",
		"etc/extensions.yaml": "its extensions", "etc/os-release": "its release",
	} {
		write(t, filepath.Join(image, name), text)
	}
	write(t, node, "the wrapper")
	if err := os.Symlink("usr/bin", filepath.Join(image, "sbin")); err != nil {
		t.Fatal(err)
	}

	options := Options{Talos: image, Node: node, Components: &Components{}}
	if err := options.makeSystem(root, []byte("ours"), true); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"sbin/init": "Talos ours" + strings.Repeat("\n", len(list)-4), "usr/bin/runc": "the wrapper", "usr/bin/runc.real": "its runc",
		"usr/bin/containerd": "its containerd", "opt/cni/bin/flannel": "its flannel", "etc/extensions.yaml": "its extensions", "etc/os-release": "its release",
		"etc/resolv.conf": "", // Docker would bring it
	} {
		if got, err := os.ReadFile(filepath.Join(root, name)); err != nil || string(got) != want {
			t.Errorf("%s is %q, %v; want %q", name, got, err, want)
		}
	}
	if got, err := os.ReadFile(filepath.Join(image, "usr/bin/init")); err != nil || !strings.Contains(string(got), "all of them") {
		t.Errorf("the image itself was changed: %q, %v", got, err)
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}
