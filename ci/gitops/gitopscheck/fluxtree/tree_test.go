package fluxtree

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"tazlab.net/castle/ci/base/filetest"
	"tazlab.net/castle/ci/base/golden"
	"tazlab.net/castle/ci/gitops/gitopscheck/manifests"
)

// described is what was found out, a line each.
func described(repository *Repository) string {
	var text strings.Builder
	for _, cluster := range repository.Clusters {
		fmt.Fprintf(&text, "cluster %q\n", cluster.Name)
		for _, k := range cluster.Kustomizations {
			fmt.Fprintf(&text, "  %s of %q", k.ID(), k.Folder)
			switch {
			case k.Err != nil:
				fmt.Fprintf(&text, " failed: %v", k.Err)
			case !k.Built:
				text.WriteString(" is not here")
			}
			text.WriteString("\n")
			for _, object := range k.Objects {
				file, line := object.At()
				fmt.Fprintf(&text, "    %s at %s:%d %v\n", object.ID(), file, line, orNone(manifests.Map(object.Object, "data")))
			}
			for _, base := range k.Remote {
				fmt.Fprintf(&text, "    without %s\n", base)
			}
			for _, name := range k.Empty {
				fmt.Fprintf(&text, "    nothing for %s\n", name)
			}
		}
	}
	for _, overlay := range repository.Overlays {
		fmt.Fprintf(&text, "overlay %s: %d objects, %v\n", overlay.Folder, len(overlay.Objects), overlay.Err)
	}
	for _, unused := range repository.Unused {
		fmt.Fprintf(&text, "unused %s\n", unused.Name)
	}
	return text.String()
}

func orNone(data map[string]any) any {
	if data == nil {
		return ""
	}
	return data
}

// Each archive of testdata is a repository; its last file, tree, is what Flux applies of it.
func TestWhatFluxAppliesIsFoundOut(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(names) < 6 {
		t.Fatalf("%d archives, %v", len(names), err)
	}
	for _, name := range names {
		t.Run(strings.TrimSuffix(filepath.Base(name), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			dir, want := t.TempDir(), ""
			for _, file := range archive.Files {
				if file.Name == "tree" {
					want = string(file.Data)
					continue
				}
				// Kustomize's own file system in memory refuses such a name.
				filetest.Write(t, filepath.Join(dir, "a folder + more", file.Name), string(file.Data))
			}
			files, err := manifests.Read(filepath.Join(dir, "a folder + more"))
			if err != nil {
				t.Fatal(err)
			}
			below := ""
			if strings.HasSuffix(name, "below.txtar") {
				below = "clusters/home"
			}
			repository, err := Read(t.Context(), files, below)
			if err != nil {
				t.Fatal(err)
			}
			got := described(repository)
			if golden.Update() {
				if last := len(archive.Files) - 1; archive.Files[last].Name == "tree" {
					archive.Files = archive.Files[:last]
				}
				archive.Files = append(archive.Files, txtar.File{Name: "tree", Data: []byte(got)})
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != want {
				t.Errorf("got\n%s\nwanted\n%s", got, want)
			}
			before, err := manifests.Read(files.Root)
			if err != nil || len(before.ByName) != len(files.ByName) {
				t.Errorf("the repository was written to: %d files, before %d (%v)", len(before.ByName), len(files.ByName), err)
			}
		})
	}
}
