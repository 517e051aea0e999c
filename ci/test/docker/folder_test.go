//go:build linux

package docker

import (
	"errors"
	"os"
	"testing"

	"tazlab.net/castle/ci/test/needs"
)

func TestWhatAKilledTestLeftIsRemovedAndWhatIsInUseIsNot(t *testing.T) {
	needs.Most(t)
	parent := t.TempDir()
	held, err := newFolder(parent)
	if err != nil {
		t.Fatal(err)
	}
	killed, err := newFolder(parent)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.WriteFile(killed.path("file"), nil, 0o644), killed.unlock()); err != nil {
		t.Fatal(err)
	}
	if err := removeAbandoned(parent); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(killed.name); !os.IsNotExist(err) {
		t.Errorf("the abandoned folder is still there (%v)", err)
	}
	if _, err := os.Stat(held.name); err != nil {
		t.Errorf("the folder in use is gone: %v", err)
	}
	if err := held.remove(); err != nil {
		t.Error(err)
	}
}
