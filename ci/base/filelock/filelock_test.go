//go:build unix

package filelock

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
	"time"
)

func TestALockIsHeldByOneAndFreeAgainAfterwards(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{filepath.Join(folder, "lock"), folder} {
		unlock, err := Try(name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Try(name); !errors.Is(err, ErrHeld) {
			t.Errorf("%s: got %v, want %v", name, err, ErrHeld)
		}
		if err := unlock(); err != nil {
			t.Fatal(err)
		}
		if unlock, err = Try(name); err != nil {
			t.Errorf("%s outlives its holder: %v", name, err)
		} else if err := unlock(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestALockInAFolderThatIsNotThereIsAnError(t *testing.T) {
	if _, err := Try(filepath.Join(t.TempDir(), "nowhere", "lock")); err == nil || errors.Is(err, ErrHeld) {
		t.Errorf("got %v, want an error that is not %v", err, ErrHeld)
	}
}

func TestALockIsAwaitedUntilItIsFreeOrTheContextEnds(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	unlock, err := Try(name)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := Await(ctx, name, time.Millisecond, cancel); !errors.Is(err, context.Canceled) {
		t.Errorf("its wait ended with %v", err)
	}
	told := 0
	again, err := Await(t.Context(), name, time.Millisecond, func() {
		told++
		if err := unlock(); err != nil {
			t.Error(err)
		}
	})
	if err != nil || told != 1 {
		t.Fatalf("told %d times: %v", told, err)
	}
	if err := again(); err != nil {
		t.Error(err)
	}
}
