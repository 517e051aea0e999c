package gotool

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
	"golang.org/x/mod/modfile"
)

//go:embed versions.yaml
var versionsFile []byte

// pin is another version of a recipe's module.
type pin struct {
	Go       string `yaml:"go"`
	Sum      string `yaml:"sum"`
	GoModSum string `yaml:"goModSum"`
	// Without are names of the recipe's Files that this version does not have.
	Without []string `yaml:"without"`
}

// At is the name of a recipe in another version than its own, such as hugo@v0.148.1.
func At(name, version string) string { return name + "@" + version }

// inVersion is the recipe in another version of its module.
func (r Recipe) inVersion(version string) (Recipe, error) {
	var known map[string]map[string]pin
	decoder := yaml.NewDecoder(bytes.NewReader(versionsFile))
	decoder.KnownFields(true)
	if err := decoder.Decode(&known); err != nil {
		return Recipe{}, fmt.Errorf("versions.yaml: %w", err)
	}
	pinned, there := known[r.Name][version]
	if !there {
		others := slices.Sorted(maps.Keys(known[r.Name]))
		return Recipe{}, fmt.Errorf("no sums of %s %s: there are those of %s; versions.yaml of ci/setup/gotool says how to add others",
			r.Name, version, strings.Join(append([]string{r.Version}, others...), ", "))
	}
	r.Version, r.Go, r.pin = version, pinned.Go, &pinned
	maps.DeleteFunc(r.Files, func(name, _ string) bool { return slices.Contains(pinned.Without, name) })
	sum := sha256.Sum256([]byte(strings.Join([]string{r.digest, version, pinned.Go, pinned.Sum, pinned.GoModSum}, "\n")))
	r.digest = hex.EncodeToString(sum[:])[:16]
	return r, nil
}

// writeLists writes the go.mod and go.sum that a recipe in another version is built with: the module's own, and the module.
// The go command compares what it downloads with the sums.
func (r Recipe) writeLists(source string, run func(args ...string) (string, error)) error {
	at := r.Module + "@" + r.Version
	list := &modfile.File{}
	if err := list.AddModuleStmt("tazlab.net/castle/tools/" + r.Name); err != nil {
		return err
	}
	sums := fmt.Sprintf("%s %s %s\n%[1]s %[2]s/go.mod %[4]s\n", r.Module, r.Version, r.pin.Sum, r.pin.GoModSum)
	if err := writeList(source, list, sums); err != nil {
		return err
	}
	said, err := run("mod", "download", "-json", at)
	if err != nil {
		return err
	}
	var downloaded struct{ Dir string }
	if err := json.Unmarshal([]byte(said), &downloaded); err != nil {
		return fmt.Errorf("go mod download -json %s: %w", at, err)
	}
	text, err := os.ReadFile(filepath.Join(downloaded.Dir, "go.mod"))
	if err != nil {
		return err
	}
	own, err := modfile.Parse(at+"/go.mod", text, nil)
	if err != nil {
		return err
	}
	if err := errors.Join(list.AddRequire(r.Module, r.Version), adopt(list, own)); err != nil {
		return fmt.Errorf("%s: %w", at, err)
	}
	ownSums, err := os.ReadFile(filepath.Join(downloaded.Dir, "go.sum"))
	if err != nil {
		return err
	}
	return writeList(source, list, sums+string(ownSums))
}

// adopt takes over what a module's own go.mod says of what it is built from.
func adopt(list, own *modfile.File) error {
	var failed []error
	if own.Go != nil {
		failed = append(failed, list.AddGoStmt(own.Go.Version))
	}
	for _, require := range own.Require {
		list.AddNewRequire(require.Mod.Path, require.Mod.Version, true)
	}
	for _, exclude := range own.Exclude {
		failed = append(failed, list.AddExclude(exclude.Mod.Path, exclude.Mod.Version))
	}
	for _, replace := range own.Replace {
		if replace.New.Version == "" {
			failed = append(failed, fmt.Errorf("it replaces %s by the folder %s, which no proxy has", replace.Old.Path, replace.New.Path))
			continue
		}
		failed = append(failed, list.AddReplace(replace.Old.Path, replace.Old.Version, replace.New.Path, replace.New.Version))
	}
	return errors.Join(failed...)
}

func writeList(source string, list *modfile.File, sums string) error {
	text, err := list.Format()
	if err != nil {
		return err
	}
	return errors.Join(
		os.WriteFile(filepath.Join(source, "go.mod"), text, 0o644),
		os.WriteFile(filepath.Join(source, "go.sum"), []byte(sums), 0o644),
	)
}
