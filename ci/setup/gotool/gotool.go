// Package gotool builds programs from pinned Go modules, for machines that can reach a module proxy but no registry and
// no release page. It never picks a version itself: each tool is a recipe, a folder under recipes/ that holds the
// module and its version (recipe.yaml) and the complete, checksummed list of what it is built from (go.mod.in,
// go.sum.in). Of some there are other versions, too (versions.yaml), for who has to see that they work.
//
// A built tool is kept in the cache folder under the digest of its recipe, so that a changed recipe builds anew and an
// unchanged one costs a stat.
// Beside it stand how long the last build took and all that the go command said meanwhile, of which a person is shown a
// line at the start, one at the end, and what is wrong.
package gotool

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

//go:embed recipes
var recipes embed.FS

// buildTimeout bounds one tool's download and build. The engine, the largest, takes about four minutes on two idle
// cores.
const buildTimeout = 40 * time.Minute

// inSuffix marks a recipe's files: a folder with a file called go.mod would be a module of its own, and go:embed leaves
// those out.
const inSuffix = ".in"

// Recipe says what a tool is built from.
type Recipe struct {
	Name string `yaml:"-"`
	// Module and Version name the module that holds the programs.
	Module  string `yaml:"module"`
	Version string `yaml:"version"`
	// Binaries maps each program's file name to its package, relative to Module ("." for the module's root).
	Binaries map[string]string `yaml:"binaries"`
	// Files maps names below the tool's folder to files or folders that are kept there, such as a chart: of Module
	// ("charts/metallb"), of another module that the recipe is built from, by its path and a colon
	// ("dagger.io/dagger:."), or of the recipe's own folder where they start with "./".
	Files map[string]string `yaml:"files"`
	// Go is the toolchain's version, so that every machine builds the same programs; the Go SDK's code generator also
	// writes it into the go.mod of modules, which the golang image of images.yaml must then satisfy.
	Go string `yaml:"go"`
	// Variables are set in the programs by the linker (-X).
	Variables map[string]string `yaml:"variables"`
	// Tags are the build tags.
	Tags []string `yaml:"tags"`
	// Compiler are the Debian packages to compile C++ with, for programs that hold some; without any, there is no cgo.
	Compiler []string `yaml:"compiler"`

	digest string
	pin    *pin // nil: the recipe's own version, with go.mod.in and go.sum.in
}

// Load reads an embedded recipe, by its name, or by what At makes of it and another version of versions.yaml. It fails when
// there is none of that name or version, or when the pinned version is not the one that go.mod.in requires.
func Load(name string) (Recipe, error) {
	name, version, other := strings.Cut(name, "@")
	recipe, err := loadOwn(name)
	if err != nil || !other || version == recipe.Version {
		return recipe, err
	}
	return recipe.inVersion(version)
}

func loadOwn(name string) (Recipe, error) {
	folder := path.Join("recipes", name)
	data, err := recipes.ReadFile(path.Join(folder, "recipe.yaml"))
	if errors.Is(err, fs.ErrNotExist) {
		return Recipe{}, fmt.Errorf("no recipe for %q: there are %s", name, strings.Join(Names(), ", "))
	}
	if err != nil {
		return Recipe{}, err
	}
	recipe := Recipe{Name: name}
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	decoder.KnownFields(true)
	if err := decoder.Decode(&recipe); err != nil {
		return Recipe{}, fmt.Errorf("recipe of %s: %w", name, err)
	}
	mod, err := recipes.ReadFile(path.Join(folder, "go.mod.in"))
	if err != nil {
		return Recipe{}, fmt.Errorf("recipe of %s: %w", name, err)
	}
	// A module that only a tool line needs is marked indirect.
	if want := recipe.Module + " " + recipe.Version; !strings.Contains(string(mod), want+"\n") && !strings.Contains(string(mod), want+" //") {
		return Recipe{}, fmt.Errorf("recipe of %s: recipe.yaml pins %s, go.mod.in requires another version", name, want)
	}
	recipe.digest, err = digestOf(folder)
	return recipe, err
}

// Names lists the recipes in alphabetical order.
func Names() []string {
	entries, err := recipes.ReadDir("recipes")
	if err != nil {
		panic(err) // the folder is embedded
	}
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i] = entry.Name()
	}
	return names
}

// digestOf hashes the names and contents of a recipe's files.
func digestOf(folder string) (string, error) {
	hash := sha256.New()
	err := fs.WalkDir(recipes, folder, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := recipes.ReadFile(name)
		fmt.Fprintf(hash, "%s %d\n", name, len(data))
		hash.Write(data)
		return err
	})
	return hex.EncodeToString(hash.Sum(nil))[:16], err
}

// Builder builds recipes into a cache folder.
type Builder struct {
	// Cache is the folder that built tools are kept in; it is created.
	Cache string
	// Scratch is the folder of the compiler's cache, kept for the next build. Empty: a folder that lives as long as a
	// Batch.
	Scratch string
	// Install installs Debian packages that are missing: a compiler, for the few recipes that need one.
	Install func(ctx context.Context, packages ...string) error
	// Log gets a line when a build starts and ends. Nil: no lines.
	Log io.Writer
}

// Dir is where a recipe's programs are, or will be once built.
func (b Builder) Dir(recipe Recipe) string {
	return filepath.Join(b.Cache, recipe.Name, recipe.Version+"-"+recipe.digest)
}

// Build is a Batch of one tool.
func (b Builder) Build(ctx context.Context, name string) (map[string]string, error) {
	batch := b.Batch()
	defer batch.Close()
	return batch.Build(ctx, name)
}

func (r Recipe) linkerFlags() string {
	flags := []string{"-s", "-w"}
	for _, name := range sortedKeys(r.Variables) {
		flags = append(flags, "-X", name+"="+r.Variables[name])
	}
	if len(r.Compiler) > 0 && runtime.GOOS == "linux" {
		// One program for every root: against this machine's libraries it would not start where those are older.
		flags = append(flags, "-extldflags=-static")
	}
	return strings.Join(flags, " ")
}

// cgo are the variables for the go command. Debug information would be thrown away by the linker; leaving it out spares
// a fifth of a C++ library's time.
func (r Recipe) cgo() []string {
	if len(r.Compiler) == 0 {
		return []string{"CGO_ENABLED=0"}
	}
	return []string{"CGO_ENABLED=1", "CGO_CFLAGS=-O2", "CGO_CXXFLAGS=-O2"}
}

// compiler makes sure that there is one, where the recipe needs it.
func (b Builder) compiler(ctx context.Context, recipe Recipe) error {
	if len(recipe.Compiler) == 0 {
		return nil
	}
	if _, err := exec.LookPath("g++"); err == nil {
		return nil
	}
	if b.Install == nil {
		return fmt.Errorf("there is no C++ compiler: apt-get install %s", strings.Join(recipe.Compiler, " "))
	}
	return b.Install(ctx, recipe.Compiler...)
}

func (b Builder) logf(format string, args ...any) {
	if b.Log != nil {
		fmt.Fprintf(b.Log, format+"\n", args...)
	}
}

// writeRecipe unpacks a recipe's files into dest under their real names.
func writeRecipe(name, dest string) error {
	folder := path.Join("recipes", name)
	return fs.WalkDir(recipes, folder, func(file string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(dest, strings.TrimSuffix(strings.TrimPrefix(file, folder), inSuffix))
		if entry.IsDir() {
			return os.MkdirAll(target, 0o755)
		}
		data, err := recipes.ReadFile(file)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o644)
	})
}

// removeReadOnly removes a folder that holds a Go module cache, whose folders are read-only.
func removeReadOnly(dir string) {
	_ = filepath.WalkDir(dir, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			_ = os.Chmod(name, 0o755)
		}
		return nil
	})
	_ = os.RemoveAll(dir)
}

func isDir(name string) bool {
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}

func lastLines(output string, n int) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for key := range m {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}
