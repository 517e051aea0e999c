package ci

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// keys open a cluster, or tell all about it. People keep them where they work, and castle prints two of them.
var keys = []string{"*.agekey", "*.tfstate*", "kubeconfig", "talosconfig"}

// The functions repeat the list of what they do not take of a clusters' folder, since a pragma is a literal.
func TestWhatOpensAClusterIsNotUploaded(t *testing.T) {
	files, err := filepath.Glob("../.dagger/*.go")
	if err != nil {
		t.Fatal(err)
	}
	lists := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(text), "\n") {
			if !strings.Contains(line, "+ignore=[") || strings.Contains(line, `+ignore=["*"`) { // the others name what they take
				continue
			}
			lists++
			for _, key := range keys {
				if !strings.Contains(line, `"**/`+key+`"`) {
					t.Errorf("%s:%d takes %s along", filepath.Base(file), i+1, key)
				}
			}
		}
	}
	if lists < 10 {
		t.Errorf("only %d lists were found: does this test still read what it should?", lists)
	}
}
