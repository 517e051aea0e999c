package gotool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func writeAll(t *testing.T, folder string, files map[string]string) {
	t.Helper()
	for name, text := range files {
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o444); err != nil {
			t.Fatal(err)
		}
	}
}

// from are the folders of a recipe whose module is at the first one.
func from(module, recipe string, others map[string]string) origins {
	return origins{recipe: recipe, module: func(path string) (string, error) {
		if path == "" {
			return module, nil
		}
		return others[path], nil
	}}
}

func TestFilesOfModulesAndOfTheRecipeAreKept(t *testing.T) {
	module, recipe, out, other := t.TempDir(), t.TempDir(), t.TempDir(), t.TempDir()
	writeAll(t, other, map[string]string{"client/client.go": "client"})
	writeAll(t, module, map[string]string{"deploy/chart/Chart.yaml": "module's", "deploy/chart/templates/a.yaml": "a", "crds/bundle.yaml": "crd", "main.go": "go"})
	writeAll(t, recipe, map[string]string{"sub/Chart.yaml": "recipe's"})
	err := keepFiles(from(module, recipe, map[string]string{"example.com/sdk": other}), out, map[string]string{
		"charts/x": "deploy/chart", "charts/x/crds": "crds", "charts/x/charts/sub": "./sub", "one.yaml": "crds/bundle.yaml", "sdk": "example.com/sdk:.",
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"charts/x/Chart.yaml": "module's", "charts/x/templates/a.yaml": "a", "charts/x/crds/bundle.yaml": "crd",
		"charts/x/charts/sub/Chart.yaml": "recipe's", "one.yaml": "crd", "sdk/client/client.go": "client",
	} {
		data, err := os.ReadFile(filepath.Join(out, name))
		if err != nil || string(data) != want {
			t.Errorf("%s is %q, want %q: %v", name, data, want, err)
		}
	}
	if _, err := os.Stat(filepath.Join(out, "main.go")); err == nil {
		t.Error("main.go was kept")
	}
}

func TestAFileThatTheModuleLacksIsNamed(t *testing.T) {
	for _, file := range []string{"charts/gone", "example.com/gone:."} {
		err := keepFiles(from(t.TempDir(), t.TempDir(), nil), t.TempDir(), map[string]string{"charts/x": file})
		if name, _, _ := strings.Cut(file, ":"); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", file, err)
		}
	}
}

func TestWhatKilledBuildsLeftIsSweptAndLivingOnesAreNot(t *testing.T) {
	cache := t.TempDir()
	dead, living, tool := filepath.Join(cache, ".build-1"), filepath.Join(cache, ".build-2"), filepath.Join(cache, "v1.2.3")
	for _, folder := range []string{dead, living, tool} {
		if err := os.MkdirAll(filepath.Join(folder, "mod", "example.com"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// Go's module cache is read-only.
	if err := os.Chmod(filepath.Join(dead, "mod", "example.com"), 0o555); err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	for _, folder := range []string{dead, tool} {
		if err := os.Chtimes(folder, now, now.Add(-25*time.Hour)); err != nil {
			t.Fatal(err)
		}
	}
	sweep(filepath.Join(cache, buildFolders), now)
	for folder, want := range map[string]bool{dead: false, living: true, tool: true} {
		if got := isDir(folder); got != want {
			t.Errorf("%s is there: %t", filepath.Base(folder), got)
		}
	}
}
