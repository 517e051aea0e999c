//go:build linux

package scenarios

import (
	"os"
	"path/filepath"
	"strings"
)

// change alters one file of the copied terragrunt folder.
type change struct {
	file     string
	from, to string // an empty from appends, an empty to removes
}

// without leaves layers out, so that a story that is told before them ends there.
func without(folders ...string) []change {
	var list []change
	for _, folder := range folders {
		list = append(list, change{file: "units/" + folder + "/terragrunt.hcl", to: "\nexclude {\n  if      = true\n  actions = [\"all\"]\n  no_run  = true\n}\n"})
	}
	return list
}

// copyLive copies the terragrunt folder with changes, and returns the cluster's folder in it.
func (w *world) copyLive(name string, changes ...change) string {
	w.t.Helper()
	dest := filepath.Join(w.folder, name)
	if err := os.CopyFS(dest, os.DirFS(filepath.Join(repository, "terragrunt"))); err != nil {
		w.t.Fatal(err)
	}
	for _, change := range changes {
		file := filepath.Join(dest, change.file)
		data, err := os.ReadFile(file)
		if err != nil {
			w.t.Fatal(err)
		}
		text := string(data)
		switch {
		case change.from == "":
			text += change.to
		case strings.Count(text, change.from) != 1:
			w.t.Fatalf("%s has %q %d times, not once", change.file, change.from, strings.Count(text, change.from))
		default:
			text = strings.Replace(text, change.from, change.to, 1)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			w.t.Fatal(err)
		}
	}
	return filepath.Join(dest, "live", "sandbox")
}
