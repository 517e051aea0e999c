//go:build unix

package filetree_test

import (
	"io"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"tazlab.net/castle/ci/publish/worktree/filetree"
)

var when = time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)

func text(content string) func(io.Writer) error {
	return func(to io.Writer) error {
		_, err := io.WriteString(to, content)
		return err
	}
}

func TestModesAndTimesAreThoseNamedWhateverTheUmask(t *testing.T) {
	before := syscall.Umask(0o077)
	t.Cleanup(func() { syscall.Umask(before) })
	top := t.TempDir()
	w, err := filetree.Open(top, when)
	if err != nil {
		t.Fatal(err)
	}
	h := w.Hand()
	for name, mode := range map[string]os.FileMode{"a/b/run.sh": 0o755, "a/page.md": 0o644} {
		if err := h.File(name, mode, text("x")); err != nil {
			t.Fatal(err)
		}
	}
	if err := h.Link("a/link", "page.md"); err != nil {
		t.Fatal(err)
	}
	if err := h.Leave(); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	for name, mode := range map[string]os.FileMode{
		".": 0o755, "a": 0o755, "a/b": 0o755, "a/b/run.sh": 0o755, "a/page.md": 0o644, "a/link": 0o777,
	} {
		info, err := os.Lstat(filepath.Join(top, name))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != mode || !info.ModTime().Equal(when) {
			t.Errorf("%s: mode %v, time %v; want %v, %v", name, info.Mode().Perm(), info.ModTime(), mode, when)
		}
	}
}

func TestNothingIsWrittenOutsideTheFolder(t *testing.T) {
	outside := t.TempDir()
	w, err := filetree.Open(t.TempDir(), when)
	if err != nil {
		t.Fatal(err)
	}
	h := w.Hand()
	if err := h.Link("out", outside); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"out/file", "../file", filepath.Join(outside, "file")} {
		if err := h.File(name, 0o644, text("x")); err == nil {
			t.Errorf("%s was written", name)
		}
	}
	if found, err := os.ReadDir(outside); err != nil || len(found) > 0 {
		t.Errorf("outside: %v, %v", found, err)
	}
}
