package gotool

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

func TestAProgramIsNamedAsTheGoCommandDoes(t *testing.T) {
	for pkg, want := range map[string]string{
		"k8s.io/kubernetes/cmd/kube-apiserver": "kube-apiserver",
		"go.etcd.io/etcd/server/v3":            "server",
		"github.com/gohugoio/hugo":             "hugo",
		"example.com/tool/vault":               "vault",
	} {
		if got := programName(pkg); got != want {
			t.Errorf("%s: got %q, want %q", pkg, got, want)
		}
	}
}

func TestABatchRemovesWhatItCompiled(t *testing.T) {
	cache := t.TempDir()
	batch := Builder{Cache: cache}.Batch()
	if err := batch.prepare(); err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(cache); err != nil || len(entries) != 1 {
		t.Fatalf("the cache has %v, want one folder: %v", entries, err)
	}
	batch.Close()
	if entries, err := os.ReadDir(cache); err != nil || len(entries) != 0 {
		t.Errorf("the cache still has %v: %v", entries, err)
	}
}

func TestABatchKeepsAScratchFolderOfTheCallers(t *testing.T) {
	scratch := filepath.Join(t.TempDir(), "scratch")
	batch := Builder{Cache: t.TempDir(), Scratch: scratch}.Batch()
	if err := batch.prepare(); err != nil {
		t.Fatal(err)
	}
	batch.Close()
	if !isDir(scratch) {
		t.Error("the folder is gone")
	}
}

func TestToolsAreBuiltSideBySideAndTheFirstFailureEndsAll(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOFLAGS", "")
	cache := t.TempDir()
	etcd := load(t, "etcd")
	builder := Builder{Cache: cache}
	if err := os.MkdirAll(builder.Dir(etcd), 0o755); err != nil { // it is there
		t.Fatal(err)
	}
	batch := builder.Batch()
	defer batch.Close()
	if err := batch.BuildAll(t.Context(), "etcd"); err != nil {
		t.Error(err)
	}
	err := batch.BuildAll(t.Context(), "etcd", "hugo", "tofu", "terragrunt")
	if err == nil || !strings.HasPrefix(err.Error(), "build ") {
		t.Errorf("got %v", err)
	}
}

func TestAFailedBuildShowsWhatTheGoCommandSaid(t *testing.T) {
	t.Setenv("GOPROXY", "off")
	t.Setenv("GOFLAGS", "")
	_, err := Builder{Cache: t.TempDir()}.Build(t.Context(), "etcd")
	if err == nil || !strings.Contains(err.Error(), "build etcd v3.6.8: ") || !strings.Contains(err.Error(), "module lookup disabled by GOPROXY=off") {
		t.Errorf("got %v", err)
	}
}

func TestOnlyARecipeThatNamesACompilerIsBuiltWithCgo(t *testing.T) {
	for name, want := range map[string]string{"hugo": "CGO_ENABLED=1", "etcd": "CGO_ENABLED=0"} {
		recipe, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := recipe.cgo(); got[0] != want {
			t.Errorf("%s: got %v, want %s", name, got, want)
		}
		// A program with the machine's C++ library in it starts in every root.
		if static := strings.Contains(recipe.linkerFlags(), "-extldflags=-static"); static != (name == "hugo" && runtime.GOOS == "linux") {
			t.Errorf("%s: linked with %s", name, recipe.linkerFlags())
		}
	}
}

func TestWithoutACompilerTheErrorNamesItsPackage(t *testing.T) {
	goCommand, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := os.Symlink(goCommand, filepath.Join(folder, "go")); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", folder)
	if _, err := (Builder{Cache: t.TempDir()}).Build(t.Context(), "hugo"); err == nil || !strings.Contains(err.Error(), "apt-get install g++") {
		t.Errorf("got %v", err)
	}
	var asked []string
	refuse := func(_ context.Context, packages ...string) error {
		asked = packages
		return errors.New("no root")
	}
	if _, err := (Builder{Cache: t.TempDir(), Install: refuse}).Build(t.Context(), "hugo"); err == nil || !strings.Contains(err.Error(), "no root") || !slices.Equal(asked, []string{"g++"}) {
		t.Errorf("asked for %q, got %v", asked, err)
	}
}
