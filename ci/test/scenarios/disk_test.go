//go:build linux

package scenarios

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// diskSize holds what a create writes, several times over.
const diskSize = 256 << 20

// ownDisk gives castle's files a disk of their own, which can be full. It comes before anything is written.
func (w *world) ownDisk() {
	w.t.Helper()
	w.disk = filepath.Join(w.folder, "disk")
	if err := os.Mkdir(w.disk, 0o700); err != nil {
		w.t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", w.disk, "tmpfs", 0, fmt.Sprintf("size=%d", diskSize)); err != nil {
		w.t.Fatalf("a disk of its own: %v", err)
	}
	w.t.Cleanup(func() {
		if err := unix.Unmount(w.disk, unix.MNT_DETACH); err != nil {
			w.t.Error(err)
		}
	})
	w.linkPlugins()
}

// fillDisk leaves no byte free until it is mended.
func (w *world) fillDisk() (mend func()) {
	w.t.Helper()
	name := filepath.Join(w.disk, "filler")
	file, err := os.Create(name)
	if err != nil {
		w.t.Fatal(err)
	}
	block := make([]byte, 1<<20)
	for len(block) > 0 {
		if _, err := file.Write(block); err != nil {
			block = block[:len(block)/2]
		}
	}
	if err := file.Close(); err != nil {
		w.t.Fatal(err)
	}
	return func() {
		if err := os.Remove(name); err != nil {
			w.t.Fatal(err)
		}
	}
}
