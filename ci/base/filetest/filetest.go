// Package filetest writes files for tests.
package filetest

import (
	"os"
	"path/filepath"
	"testing"
)

// New writes files into a folder that lives as long as the test, and returns it. The names have slashes and are seen from the folder.
func New(t testing.TB, texts map[string]string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	All(t, folder, texts)
	return folder
}

// All writes files into a folder. The names have slashes and are seen from it.
func All(t testing.TB, folder string, texts map[string]string) {
	t.Helper()
	for name, text := range texts {
		Write(t, filepath.Join(folder, filepath.FromSlash(name)), text)
	}
}

// Write writes a file, and makes the folders above it where they are missing.
func Write(t testing.TB, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
