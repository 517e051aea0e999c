//go:build linux

package talosnodes

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
)

// TestTheOfficialImageIsTakenAsItIs but for its list of authorities and, where that is needed, the wrapper before its runc.
func TestTheOfficialImageIsTakenAsItIs(t *testing.T) {
	image, root, node := t.TempDir(), filepath.Join(t.TempDir(), "system"), filepath.Join(t.TempDir(), "castle-node")
	list := begins + strings.Repeat("\nall of them", 9) + ends
	if err := os.CopyFS(image, fstest.MapFS{
		"usr/bin/init": {Data: []byte("Talos " + list)}, "usr/bin/runc": {Data: []byte("its runc")}, "usr/bin/containerd": {Data: []byte("its containerd")},
		"opt/cni/bin/flannel": {Data: []byte("its flannel")}, "etc/extensions.yaml": {Data: []byte("its extensions")},
		"etc/os-release": {Data: []byte("its release")}, "sbin": {Data: []byte("usr/bin"), Mode: fs.ModeSymlink},
	}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(node, []byte("the wrapper"), 0o755); err != nil {
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
