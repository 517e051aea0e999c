package ci

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	anyAction    = regexp.MustCompile(`(?m)^\s*(?:- )?uses: .*$`)
	pinnedAction = regexp.MustCompile(`uses: [\w.-]+/[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
)

// A tag of an action can be moved, and the workflow that publishes has two secrets.
func TestWorkflowsTakeActionsByCommit(t *testing.T) {
	files, err := filepath.Glob("../.github/workflows/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d workflows, %v", len(files), err)
	}
	found := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range anyAction.FindAllString(string(text), -1) {
			found++
			if !pinnedAction.MatchString(line) {
				t.Errorf("%s: %s: write the commit, and the version behind it", filepath.Base(file), strings.TrimSpace(line))
			}
		}
	}
	if found == 0 {
		t.Error("no action was found: does this test still read what it should?")
	}
}

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
