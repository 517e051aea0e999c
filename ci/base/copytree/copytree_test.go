package copytree

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"testing"
)

// folder makes one with these files, which nobody may write to.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	made := t.TempDir()
	for name, text := range files {
		file := filepath.Join(made, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, []byte(text), 0o444)); err != nil {
			t.Fatal(err)
		}
	}
	return made
}

// expect compares a folder's files.
func expect(t *testing.T, folder string, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	err := filepath.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o200 == 0 {
			t.Errorf("%s may not be written to: %v", name, info.Mode())
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		below, err := filepath.Rel(folder, name)
		got[below] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestAFolderIsLaidOverAnother(t *testing.T) {
	dest := filepath.Join(t.TempDir(), "dest")
	for _, files := range []map[string]string{{"a": "1", "sub/b": "1"}, {"sub/b": "2", "sub/deep/c": "2"}} {
		if err := Over(folder(t, files), dest); err != nil {
			t.Fatal(err)
		}
	}
	expect(t, dest, map[string]string{"a": "1", "sub/b": "2", "sub/deep/c": "2"})
}

func TestAFileIsCopiedIntoAFolderThatIsMade(t *testing.T) {
	dest := t.TempDir()
	if err := Over(filepath.Join(folder(t, map[string]string{"a": "1"}), "a"), filepath.Join(dest, "new", "b")); err != nil {
		t.Fatal(err)
	}
	expect(t, dest, map[string]string{"new/b": "1"})
}

func TestFoldersOfSomeNamesAreLeftOutWhereverTheyAre(t *testing.T) {
	dest := t.TempDir()
	source := folder(t, map[string]string{"a": "1", ".cache/b": "1", "sub/.cache/deep/c": "1", "sub/cache": "1"})
	if err := Over(source, dest, ".cache", ".other"); err != nil {
		t.Fatal(err)
	}
	expect(t, dest, map[string]string{"a": "1", "sub/cache": "1"})
}

func TestASourceThatIsNotThereIsAnError(t *testing.T) {
	if err := Over(filepath.Join(t.TempDir(), "gone"), t.TempDir()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
