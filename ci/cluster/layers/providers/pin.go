package providers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// rootFile pins the providers of all layers.
const rootFile = "root.hcl"

// fetchTime is how long the registry may take for all providers, which are some 150 MB.
const fetchTime = 10 * time.Minute

// pinForm finds a provider there: its source and its version.
var pinForm = regexp.MustCompile(`source = "([^"]+)"\n(?:\s*#.*\n)*\s*version = "([^"]+)"`)

// pin is a provider in the version that the layers use.
type pin struct{ source, version string }

func (p pin) address() string { return "registry.opentofu.org/" + p.source }

func pinned(terragrunt string) ([]pin, error) {
	root, err := os.ReadFile(filepath.Join(terragrunt, rootFile))
	if err != nil {
		return nil, err
	}
	var pins []pin
	for _, found := range pinForm.FindAllStringSubmatch(string(root), -1) {
		pins = append(pins, pin{source: found[1], version: found[2]})
	}
	if len(pins) == 0 || len(pins) != strings.Count(string(root), `source = "`) {
		return nil, fmt.Errorf("%s: %d providers were found with a version behind their source; give each of them one", rootFile, len(pins))
	}
	return pins, nil
}

// project is a folder for OpenTofu that asks for all providers and does nothing with them.
func project(pins []pin) (folder string, err error) {
	folder, err = os.MkdirTemp("", "castle-providers-")
	if err != nil {
		return "", err
	}
	var configuration strings.Builder
	configuration.WriteString("terraform {\n  required_providers {\n")
	for _, p := range pins {
		fmt.Fprintf(&configuration, "    %s = {\n      source  = %q\n      version = %q\n    }\n", filepath.Base(p.source), p.source, p.version)
	}
	configuration.WriteString("  }\n}\n")
	if err := os.WriteFile(filepath.Join(folder, "providers.tf"), []byte(configuration.String()), 0o600); err != nil {
		return "", errors.Join(err, os.RemoveAll(folder))
	}
	return folder, nil
}

// Pin asks the registry for the hashes of all providers that the folder terragrunt pins, for some platforms ("linux_amd64"), and gives
// them as a lock file. OpenTofu downloads each of them once, and checks who signed it where its registry says who may.
func Pin(ctx context.Context, tofu, terragrunt string, platforms []string) ([]byte, error) {
	pins, err := pinned(terragrunt)
	if err != nil {
		return nil, err
	}
	folder, err := project(pins)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	args := []string{"providers", "lock", "-no-color"}
	for _, platform := range platforms {
		args = append(args, "-platform="+platform)
	}
	if err := run(ctx, folder, tofu, args...); err != nil {
		return nil, err
	}
	return lockOf(folder, pins)
}

// Fetch downloads all providers that the folder terragrunt pins into the folder dest, for the platform that it runs on: once, for
// a folder that OpenTofu looks in before it asks a registry. What has none of the hashes that the repository's lock file gives is
// refused. The lock file of what there is now stands beside them, as File, for CheckFetched.
func Fetch(ctx context.Context, tofu, terragrunt, dest string) error {
	pins, err := pinned(terragrunt)
	if err != nil {
		return err
	}
	known, err := read(filepath.Join(terragrunt, File))
	if err != nil {
		return err
	}
	folder, err := project(pins)
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	var locks strings.Builder
	for _, p := range pins {
		locks.WriteString(known[p.address()][p.version])
	}
	if err := os.WriteFile(filepath.Join(folder, LockFile), []byte(locks.String()), 0o600); err != nil {
		return err
	}
	// An interrupted download is not the end: OpenTofu tries it again.
	if err := run(ctx, folder, tofu, "init", "-no-color", "-input=false"); err != nil {
		return err
	}
	text, err := lockOf(folder, pins)
	if err != nil {
		return err
	}
	if err := os.CopyFS(filepath.Join(dest, FetchedFolder), os.DirFS(filepath.Join(folder, ".terraform", "providers"))); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dest, File), text, 0o644)
}

// run has OpenTofu do something in a folder.
func run(ctx context.Context, folder, tofu string, args ...string) error {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	command := exec.CommandContext(ctx, tofu, args...)
	command.Dir = folder
	command.Env = append(os.Environ(), "TF_PROVIDER_DOWNLOAD_RETRY=5")
	command.WaitDelay = 10 * time.Second
	if out, err := command.CombinedOutput(); err != nil {
		return errors.Join(ctx.Err(), fmt.Errorf("tofu %s: %w\n%s", args[0], err, out))
	}
	return nil
}

// lockOf is the lock file that OpenTofu left in a folder, which must speak of all providers.
func lockOf(folder string, pins []pin) ([]byte, error) {
	locks, err := read(filepath.Join(folder, LockFile))
	if err != nil {
		return nil, err
	}
	for _, p := range pins {
		if locks[p.address()][p.version] == "" {
			return nil, fmt.Errorf("OpenTofu's lock file says nothing of %s %s", p.source, p.version)
		}
	}
	return os.ReadFile(filepath.Join(folder, LockFile))
}
