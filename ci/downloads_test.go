package ci

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What the module itself downloads is compared with a checksum in the step that hands it on.
func TestTheModuleDownloadsNothingWithoutAChecksum(t *testing.T) {
	files, err := filepath.Glob("../.dagger/*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		downloads, checks := strings.Count(string(text), "dag.HTTP("), strings.Count(string(text), `"sha256sum", "--check", "--strict"`)
		if downloads != checks {
			t.Errorf("%s downloads %d files and checks %d", filepath.Base(file), downloads, checks)
		}
	}
}
