package gotool

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/sumdb/dirhash"
	"golang.org/x/mod/zip"
)

func TestAnotherVersionOfARecipeLoads(t *testing.T) {
	own, err := Load("hugo")
	if err != nil {
		t.Fatal(err)
	}
	other, err := Load(At("hugo", "v0.148.1"))
	if err != nil {
		t.Fatal(err)
	}
	builder := Builder{Cache: t.TempDir()}
	if other.Version != "v0.148.1" || other.Module != own.Module {
		t.Errorf("got %+v", other)
	}
	if strings.HasSuffix(builder.Dir(other), own.digest) {
		t.Error("with other sums, nothing would be built anew")
	}
	old, err := Load(At("hugo", "v0.110.0"))
	if err != nil || len(old.Files) != 0 || own.Files["entrypoint.sh"] == "" {
		t.Errorf("a file that the old version lacks is kept: %v, %v", old.Files, err)
	}
	same, err := Load(At("hugo", own.Version))
	if err != nil || builder.Dir(same) != builder.Dir(own) {
		t.Errorf("the recipe's own version is another tool: %+v, %v", same, err)
	}
	for name, want := range map[string]string{
		"hugo@v0.1.2": "no sums of hugo v0.1.2: there are those of " + own.Version + ", v0.110.0, v0.148.1; versions.yaml",
		"etcd@v1.2.3": "no sums of etcd v1.2.3",
		"none@v1.2.3": `no recipe for "none"`,
	} {
		if _, err := Load(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
}

// publish puts a module with these files into a proxy's folder, and returns the line of go.sum for it and for its go.mod.
func publish(t *testing.T, proxy string, at module.Version, files map[string]string) (sum, goModSum string) {
	t.Helper()
	source, folder := t.TempDir(), filepath.Join(proxy, at.Path, "@v")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(source, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	archive, err := os.Create(filepath.Join(folder, at.Version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer archive.Close()
	if err := zip.CreateFromDir(archive, at, source); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{".info": `{"Version":"` + at.Version + `"}`, ".mod": files["go.mod"]} {
		if err := os.WriteFile(filepath.Join(folder, at.Version+name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if sum, err = dirhash.HashZip(archive.Name(), dirhash.Hash1); err != nil {
		t.Fatal(err)
	}
	goMod := filepath.Join(source, "go.mod")
	if goModSum, err = dirhash.Hash1([]string{"go.mod"}, func(string) (io.ReadCloser, error) { return os.Open(goMod) }); err != nil {
		t.Fatal(err)
	}
	return sum, goModSum
}

// The module, and what it is built from, come from a proxy that knows no checksum database.
func TestAnotherVersionIsBuiltFromTheListsThatItsModuleHas(t *testing.T) {
	proxy := t.TempDir()
	library := module.Version{Path: "example.org/library", Version: "v1.4.0"}
	sum, goModSum := publish(t, proxy, library, map[string]string{"go.mod": "module example.org/library\n\ngo 1.24\n", "library.go": "package library\n"})
	tool := module.Version{Path: "example.org/tool", Version: "v0.148.1"}
	lists := map[string]string{
		"go.mod":  "module example.org/tool\n\ngo 1.24\n\nrequire example.org/library v1.2.0\n\nreplace example.org/library v1.2.0 => example.org/library v1.4.0\n",
		"go.sum":  "example.org/library v1.4.0 " + sum + "\nexample.org/library v1.4.0/go.mod " + goModSum + "\n",
		"main.go": "package main\n\nimport _ \"example.org/library\"\n\nfunc main() {}\n",
	}
	recipe := Recipe{Name: "tool", Module: tool.Path, Version: tool.Version, pin: &pin{}}
	recipe.pin.Sum, recipe.pin.GoModSum = publish(t, proxy, tool, lists)

	write := func(recipe Recipe) (string, error) {
		source, cache := t.TempDir(), t.TempDir()
		t.Cleanup(func() { removeReadOnly(filepath.Join(cache, "mod")) })
		run := func(args ...string) (string, error) {
			command := exec.CommandContext(t.Context(), "go", args...)
			command.Dir = source
			command.Env = append(os.Environ(), "GOPROXY=file://"+proxy, "GOSUMDB=sum.golang.org http://127.0.0.1:1", "GOFLAGS=", "GOWORK=off", "GOTOOLCHAIN=local",
				"GONOSUMDB=", "GONOPROXY=", "GOPRIVATE=", "GOMODCACHE="+filepath.Join(cache, "mod"))
			var stderr strings.Builder
			command.Stderr = &stderr
			said, err := command.Output()
			if err != nil {
				err = fmt.Errorf("%w: %s", err, &stderr)
			}
			return string(said), err
		}
		if err := recipe.writeLists(source, run); err != nil {
			return "", err
		}
		return run("list", "-mod=readonly", "-deps", "-f", "{{with .Module}}{{.Path}} {{with .Replace}}{{.Version}}{{else}}{{.Version}}{{end}}{{end}}", tool.Path)
	}
	built, err := write(recipe)
	if err != nil || !strings.Contains(built, "example.org/library v1.4.0\n") || !strings.Contains(built, "example.org/tool v0.148.1\n") {
		t.Errorf("%v, it would be built from\n%s", err, built)
	}
	other := recipe
	other.pin = &pin{Sum: goModSum, GoModSum: recipe.pin.GoModSum}
	if built, err := write(other); err == nil {
		t.Errorf("a module with another sum is built from\n%s", built)
	}
}
