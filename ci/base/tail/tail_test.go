package tail

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
)

func TestWholeLinesAreGivenOnce(t *testing.T) {
	name := filepath.Join(t.TempDir(), "log")
	file := New(name)
	t.Cleanup(func() { _ = file.Close() })
	gives := func(want ...string) {
		t.Helper()
		lines, err := file.Lines()
		if got := fmt.Sprintf("%s", lines); err != nil || got != fmt.Sprint(want) {
			t.Errorf("got %s, want %s: %v", got, want, err)
		}
	}
	gives() // it is not there yet
	out, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		if _, err := out.WriteString(text); err != nil {
			t.Fatal(err)
		}
	}
	gives()
	write("one\ntw")
	gives("one")
	gives()
	write("o\n\nthree\n")
	gives("two", "", "three")
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	gives()
}
