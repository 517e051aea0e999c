package gotool

import (
	"os"
	"path/filepath"
	"regexp"
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

// A version that a program tells of itself stands in a recipe a second time.
func TestAProgramTellsTheVersionThatItIsBuiltFrom(t *testing.T) {
	release := regexp.MustCompile(`^v?[0-9]+\.[0-9]+\.[0-9]+$`)
	for _, name := range Names() {
		recipe, err := Load(name)
		if err != nil {
			t.Fatal(err)
		}
		if !release.MatchString(recipe.Version) {
			continue // a commit, whose release only its author knows
		}
		for variable, value := range recipe.Variables {
			if release.MatchString(value) && strings.TrimPrefix(value, "v") != strings.TrimPrefix(recipe.Version, "v") {
				t.Errorf("%s: %s is %s, the version %s", name, variable, value, recipe.Version)
			}
		}
	}
}

// Of Terragrunt the module fetches a release where no stand-in brings it.
func TestTerragruntIsOfTheVersionThatTheModuleFetches(t *testing.T) {
	recipe, err := Load("terragrunt")
	if err != nil {
		t.Fatal(err)
	}
	module, err := os.ReadFile("../../../.dagger/layer_tools.go")
	if err != nil {
		t.Fatal(err)
	}
	releases := regexp.MustCompile(`"(amd64|arm64)": \{"(\S+)", "[0-9a-f]{64}"\}`).FindAllSubmatch(module, -1)
	if len(releases) != 2 {
		t.Fatalf("layer_tools.go pins %d releases", len(releases))
	}
	for _, release := range releases {
		if version := string(release[2]); version != recipe.Version {
			t.Errorf("%s: the module fetches %s, the recipe is of %s", release[1], version, recipe.Version)
		}
	}
}

// What k8s.io/kubernetes takes from folders of its own repository is published as modules of the same minor and patch
// version.
func TestKubernetesIsBuiltWithItsOwnStagingModules(t *testing.T) {
	recipe, err := Load("kubernetes")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := recipes.ReadFile("recipes/kubernetes/go.mod.in")
	if err != nil {
		t.Fatal(err)
	}
	want := "v0" + strings.TrimPrefix(recipe.Version, "v1")
	replaced := regexp.MustCompile(`(?m)^\s*(?:replace )?(k8s\.io/\S+) => (\S+) (\S+)$`).FindAllStringSubmatch(string(mod), -1)
	if len(replaced) == 0 {
		t.Error("go.mod.in replaces no staging module")
	}
	for _, match := range replaced {
		if match[2] != match[1] || match[3] != want {
			t.Errorf("%s is replaced by %s %s, want %s", match[1], match[2], match[3], want)
		}
	}
}

// Real nodes run the Talos that configurations are made for, with the containerd that it is built with.
func TestRealNodesAreOfOneTalos(t *testing.T) {
	talos, err := Load("talos")
	if err != nil {
		t.Fatal(err)
	}
	containerd, err := Load("containerd")
	if err != nil {
		t.Fatal(err)
	}
	built, err := recipes.ReadFile("recipes/talos/go.mod.in")
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	machinery := talos.Module + "/pkg/machinery " + talos.Version
	for what, c := range map[string]struct{ mod, want string }{
		"the recipe's containerd": {string(built), containerd.Module + " " + containerd.Version},
		"the recipe's machinery":  {string(built), machinery},
		"castle's machinery":      {string(own), machinery},
	} {
		if !regexp.MustCompile(`(?m)^\s` + regexp.QuoteMeta(c.want) + `( //.*)?$`).MatchString(c.mod) {
			t.Errorf("%s is not %s", what, c.want)
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
