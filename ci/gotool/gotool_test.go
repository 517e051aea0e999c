package gotool

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEveryRecipeLoads(t *testing.T) {
	for _, name := range Names() {
		recipe, err := Load(name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(recipe.Binaries) == 0 {
			t.Errorf("%s builds no program", name)
		}
	}
}

func TestAnUnknownRecipeNamesTheKnownOnes(t *testing.T) {
	_, err := Load("nonesuch")
	if err == nil || !strings.Contains(err.Error(), "dagger") {
		t.Fatalf("got %v, want an error that lists the recipes", err)
	}
}

func TestABuiltToolIsNotBuiltAgain(t *testing.T) {
	recipe, err := Load("hugo")
	if err != nil {
		t.Fatal(err)
	}
	builder := Builder{Cache: t.TempDir()}
	if err := os.MkdirAll(builder.Dir(recipe), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", "") // a build would fail for lack of a go command
	programs, err := builder.Build(t.Context(), "hugo")
	if err != nil {
		t.Fatal(err)
	}
	if want := filepath.Join(builder.Dir(recipe), "hugo"); programs["hugo"] != want {
		t.Errorf("got %q, want %q", programs["hugo"], want)
	}
}

func TestWithoutGoTheErrorSaysWhatToInstall(t *testing.T) {
	t.Setenv("PATH", "")
	_, err := Builder{Cache: t.TempDir()}.Build(t.Context(), "hugo")
	if err == nil || !strings.Contains(err.Error(), "install Go") {
		t.Fatalf("got %v, want an error that says to install Go", err)
	}
}

func TestAReadOnlyModuleCacheIsRemoved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "work")
	inner := filepath.Join(dir, "mod", "example.com@v1.0.0")
	if err := os.MkdirAll(inner, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(inner, "go.mod"), nil, 0o444); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(inner, 0o555); err != nil {
		t.Fatal(err)
	}
	removeReadOnly(dir)
	if isDir(dir) {
		t.Error("the folder is still there")
	}
}
