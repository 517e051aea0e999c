// Package golden compares what tests get with files of testdata. The flag -update writes these files anew.
package golden

import (
	"flag"
	"os"
	"testing"
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
		t.Errorf("%s differs; look at it, and run with -update if it shall be so. Got\n%s", file, got)
	}
}
