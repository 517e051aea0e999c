package filelock

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

// The child lives on where its parent is killed, as Terragrunt does, and nobody else may have the lock until it ends.
func TestALockIsHeldByChildrenToo(t *testing.T) {
	name := filepath.Join(t.TempDir(), "lock")
	unlock, err := TryWithChildren(name)
	if err != nil {
		t.Fatal(err)
	}
	child := exec.Command("sh", "-c", "read line; exit 0")
	end, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	// What a kill does to the parent: its descriptors are closed, and nothing else happens.
	abandon(t, name)
	if _, err := Try(name); !errors.Is(err, ErrHeld) {
		t.Errorf("beside the child: %v, want %v", err, ErrHeld)
	}
	if err := errors.Join(end.Close(), child.Wait()); err != nil {
		t.Fatal(err)
	}
	again, err := Try(name)
	if err != nil {
		t.Fatalf("after the child: %v", err)
	}
	_, _ = unlock(), again()
}

// abandon closes every descriptor of this process that is open on a file.
func abandon(t *testing.T, name string) {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if to, _ := os.Readlink("/proc/self/fd/" + entry.Name()); to != name {
			continue
		}
		fd, err := strconv.Atoi(entry.Name())
		if err != nil {
			t.Fatal(err)
		}
		// A descriptor of something else in its place, so that the later unlock closes nothing of another's.
		null, err := os.Open(os.DevNull)
		if err != nil {
			t.Fatal(err)
		}
		if err := unix.Dup3(int(null.Fd()), fd, unix.O_CLOEXEC); err != nil {
			t.Fatal(err)
		}
		null.Close()
	}
}
