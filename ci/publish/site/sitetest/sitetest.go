// Package sitetest writes built sites for tests, and compares what is found in golden ones.
package sitetest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"tazlab.net/castle/ci/base/filetest"
	"tazlab.net/castle/ci/base/golden"
)

// Golden compares what is found in every site of testdata that the pattern matches. A site is a txtar archive: its
// comment begins with the sentence that it proves, its files are those of the built site, and the last of them, want,
// is what must be found. find gets the lines of the comment below the sentence, and the folder that the files were
// written to.
func Golden(t *testing.T, pattern string, find func(t *testing.T, comment, dir string) string) {
	t.Helper()
	for _, name := range archives(t, pattern) {
		archive := parse(t, name)
		sentence, comment, _ := strings.Cut(string(archive.Comment), "\n")
		t.Run(sentence, func(t *testing.T) {
			t.Parallel()
			files, want := archive.Files, ""
			if last := len(files) - 1; files[last].Name == "want" {
				files, want = files[:last], string(files[last].Data)
			}
			got := find(t, comment, unpack(t, files))
			if golden.Update() {
				archive.Files = append(slices.Clip(files), txtar.File{Name: "want", Data: []byte(got)})
				if err := os.WriteFile(name, txtar.Format(archive), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			if got != want {
				t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
			}
		})
	}
}

// Files are the files of all golden sites that the pattern matches, as seeds for a fuzz test.
func Files(t testing.TB, pattern string) (files []txtar.File) {
	t.Helper()
	for _, name := range archives(t, pattern) {
		files = append(files, parse(t, name).Files...)
	}
	return files
}

// Unpack writes the site of a txtar archive and returns its folder.
func Unpack(t testing.TB, archive string) (dir string) {
	t.Helper()
	return unpack(t, txtar.Parse([]byte(archive)).Files)
}

func unpack(t testing.TB, files []txtar.File) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for _, file := range files {
		filetest.Write(t, filepath.Join(dir, filepath.FromSlash(file.Name)), string(file.Data))
	}
	return dir
}

func archives(t testing.TB, pattern string) []string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join("testdata", pattern))
	if err != nil || len(names) == 0 {
		t.Fatalf("no golden sites: %v", err)
	}
	return names
}

func parse(t testing.TB, name string) *txtar.Archive {
	t.Helper()
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return archive
}
