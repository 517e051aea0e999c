package main

import (
	"path/filepath"
	"slices"
	"testing"

	"tazlab.net/castle/ci/publish/warning"
)

func TestWarningsOfABuildComeBackForTheReport(t *testing.T) {
	for _, want := range [][]string{nil, {"the theme plain asks for Hugo 0.120.1 or older"}} {
		file := filepath.Join(t.TempDir(), "warnings.json")
		if err := writeWarnings(file, append([]string{""}, want...)...); err != nil {
			t.Fatal(err)
		}
		if got, err := readWarnings(file); err != nil || !slices.Equal(warning.Texts(got), want) {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
}
