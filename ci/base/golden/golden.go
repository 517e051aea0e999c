// Package golden compares what tests get with files of testdata. The flag -update writes these files anew.
package golden

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/rogpeppe/go-internal/diff"
)

var update = flag.Bool("update", false, "write the golden files of testdata anew")

// Update says whether golden files are written instead of compared.
func Update() bool { return *update }

// Match compares a text with a file.
func Match(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; if that is what you want, run the test with -update\n%s", file, Diff(file, string(want), got))
	}
}

// shown is how many lines of a diff are worth reading.
const shown = 40

// Diff shows what differs, as diff -u does, and no more than its first lines.
func Diff(name, want, got string) string {
	lines := bytes.SplitAfter(diff.Diff(name, []byte(want), "got", []byte(got)), []byte("\n"))
	if more := len(lines) - shown; more > 0 {
		lines = append(lines[:shown], fmt.Appendf(nil, "… and %d lines more\n", more))
	}
	return string(bytes.Join(lines, nil))
}
