// Package needs is for tests that need what a machine may lack: built tools, a program, root. Such a test is skipped
// with what is missing and how to get it, and fails where CASTLE_REQUIRE_ALL is set, as CI sets it. It never builds or
// installs anything itself, which takes minutes. With -short, as `make check` has it, all of them are left out: a unit test
// needs nothing but Go and Git.
package needs

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tazlab.net/castle/ci/setup/gotool"
)

// requireAll is the variable that, not empty, lets no test be skipped.
const requireAll = "CASTLE_REQUIRE_ALL"

// Missing ends a test that lacks something; the text says what, and how to get it.
func Missing(t testing.TB, format string, args ...any) {
	t.Helper()
	missing := fmt.Sprintf(format, args...)
	if os.Getenv(requireAll) != "" {
		t.Fatalf("%s is set, and the test cannot run: %s", requireAll, missing)
	}
	t.Skipf("NOT RUN: %s", missing)
}

// FullRun skips a test that is too much for a quick run, unless all tests are required: what it does, and what machine it
// does that on.
func FullRun(t testing.TB, does, machine string) {
	t.Helper()
	UnlessShort(t, machine)
	if os.Getenv(requireAll) == "" {
		t.Skipf("NOT RUN: %s; set %s=1 on %s", does, requireAll, machine)
	}
}

// short tells of a quick run.
var short = testing.Short

// UnlessShort leaves a test out of a quick run: what completes "needs ".
func UnlessShort(t testing.TB, what string) {
	t.Helper()
	if short() {
		t.Skipf("NOT RUN: -short leaves out what needs %s", what)
	}
}

// Root is for a test that is run by root only; why completes "it needs root, ".
func Root(t testing.TB, why string) {
	t.Helper()
	UnlessShort(t, "root")
	if os.Geteuid() != 0 {
		Missing(t, "it needs root, %s", why)
	}
}

// Command finds a program of the machine, which may have one of several names, and which a Debian package brings.
func Command(t testing.TB, debianPackage string, names ...string) string {
	t.Helper()
	UnlessShort(t, names[0])
	for _, name := range names {
		if file, err := exec.LookPath(name); err == nil {
			return file
		}
	}
	Missing(t, "%s is not installed: apt-get install --no-install-recommends %s", names[0], debianPackage)
	return ""
}

// Cache is castle's cache folder, as make has it.
func Cache(t testing.TB) string {
	t.Helper()
	folder, err := cache()
	if err != nil {
		t.Fatal(err)
	}
	return folder
}

func cache() (string, error) {
	if folder := os.Getenv("CASTLE_CACHE"); folder != "" {
		return folder, nil
	}
	folder, err := os.UserCacheDir()
	return filepath.Join(folder, "castle"), err
}

// Built is what `castle tool` made of a recipe.
type Built struct {
	Folder   string            // everything that the build kept
	Programs map[string]string // files by the programs' names
}

// Find looks up built tools by the names of their recipes. Its error names all that are not built.
func Find(tools ...string) (map[string]Built, error) {
	folder, err := cache()
	if err != nil {
		return nil, err
	}
	builder := gotool.Builder{Cache: filepath.Join(folder, "tools")}
	found := map[string]Built{}
	var lacking notBuilt
	for _, tool := range tools {
		recipe, err := gotool.Load(tool)
		if err != nil {
			return nil, err
		}
		built := Built{Folder: builder.Dir(recipe), Programs: map[string]string{}}
		// Put in place whole: a folder that is there holds every program.
		if _, err := os.Stat(built.Folder); err != nil {
			lacking = append(lacking, tool)
		}
		for name := range recipe.Binaries {
			built.Programs[name] = filepath.Join(built.Folder, name)
		}
		found[tool] = built
	}
	if len(lacking) > 0 {
		return nil, lacking
	}
	return found, nil
}

// notBuilt names tools. Any other error of Find is a mistake in the test or in a recipe.
type notBuilt []string

func (n notBuilt) Error() string {
	return fmt.Sprintf("not built: %s; to build: castle tool %s", strings.Join(n, ", "), strings.Join(n, " "))
}

// Tool is the folder of what the build of a tool kept.
func Tool(t testing.TB, name string) string {
	t.Helper()
	return find(t, name)[name].Folder
}

// Programs are the files of all programs of these tools, by the programs' names.
func Programs(t testing.TB, tools ...string) map[string]string {
	t.Helper()
	files := map[string]string{}
	for _, built := range find(t, tools...) {
		maps.Copy(files, built.Programs)
	}
	return files
}

func find(t testing.TB, tools ...string) map[string]Built {
	t.Helper()
	UnlessShort(t, strings.Join(tools, ", "))
	found, err := Find(tools...)
	if lacking := (notBuilt)(nil); errors.As(err, &lacking) {
		Missing(t, "%v", lacking)
	}
	if err != nil {
		t.Fatal(err)
	}
	return found
}
