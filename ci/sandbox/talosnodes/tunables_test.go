//go:build linux

package talosnodes

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"tazlab.net/castle/ci/base/filetest"
)

func TestWhatAKilledWorldChangedIsPutBackByTheNext(t *testing.T) {
	folder, kept := t.TempDir(), filepath.Join(t.TempDir(), "kept.json")
	set := func(value string) {
		for _, tunable := range tunables {
			filetest.Write(t, filepath.Join(folder, tunable), value)
		}
	}
	set("own\n")
	if _, err := keepTunables(folder, kept); err != nil { // and is killed
		t.Fatal(err)
	}
	set("a kubelet's\n")
	back, err := keepTunables(folder, kept)
	if err != nil {
		t.Fatal(err)
	}
	if err := back(); err != nil {
		t.Fatal(err)
	}
	for _, tunable := range tunables {
		if value, err := os.ReadFile(filepath.Join(folder, tunable)); err != nil || string(value) != "own\n" {
			t.Errorf("%s is %q: %v", tunable, value, err)
		}
	}
	if _, err := os.Stat(kept); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a later world would take what was kept for the machine's: %v", err)
	}
}
