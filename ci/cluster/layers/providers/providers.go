// Package providers keeps the proofs of the providers that OpenTofu downloads: entries of OpenTofu's own lock file, which hold a
// provider's hashes for each platform. Those of the repository's file come first; a version that it does not have is trusted on first
// use, and its entry kept in the folder of a cluster's states. OpenTofu compares while it installs, before a provider runs.
//
// A provider that is there as a file came with the tools, whose image has a digest, and has no entry: another build of the same
// version has other hashes.
package providers

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
)

// File is the repository's lock file, in the folder with root.hcl. Its form is that of .terraform.lock.hcl.
const File = "providers.lock.hcl"

// LockFile is OpenTofu's, in the folder that it runs in.
const LockFile = ".terraform.lock.hcl"

// FetchedFolder holds the providers that Fetch has downloaded.
const FetchedFolder = "plugins"

// notesFolder is where entries are kept, in the folder of the states: ADDRESS/VERSION.hcl.
const notesFolder = "providers"

// Locks are entries of lock files, each as OpenTofu wrote it, by the provider's address ("registry.opentofu.org/bpg/proxmox") and
// its version.
type Locks map[string]map[string]string

// OpenTofu writes these files itself (internal/depsfile): an entry ends where its brace stands at the line's beginning.
var (
	entryForm   = regexp.MustCompile(`(?ms)^provider "([^"]+)" \{\n.*?^\}\n`)
	versionForm = regexp.MustCompile(`(?m)^\s*version\s*=\s*"([0-9][0-9A-Za-z.+-]*)"`)
	hashForm    = regexp.MustCompile(`"((?:h1|zh):[^"]+)"`)
	addressForm = regexp.MustCompile(`^[a-z0-9][a-z0-9.:-]*(/[A-Za-z0-9_-]+){2}$`)
)

// read takes a lock file apart. Text that is no entry of one is an error: a proof that nobody sees would be none.
func read(file string) (Locks, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return Locks{}, nil
	}
	if err != nil {
		return nil, err
	}
	locks := Locks{}
	entries := entryForm.FindAllStringSubmatch(string(text), -1)
	for _, entry := range entries {
		version := versionForm.FindStringSubmatch(entry[0])
		if version == nil || !hashForm.MatchString(entry[0]) || !addressForm.MatchString(entry[1]) {
			return nil, fmt.Errorf("%s: the entry of %s has no version or no hash: write the file with tofu providers lock", file, entry[1])
		}
		locks.add(entry[1], version[1], entry[0])
	}
	if strings.Count(string(text), "provider ") > len(entries) || len(entries) == 0 && strings.TrimSpace(string(text)) != "" {
		return nil, fmt.Errorf("%s is not a lock file as OpenTofu writes it: write it with tofu providers lock", file)
	}
	return locks, nil
}

func (l Locks) add(address, version, entry string) {
	if l[address] == nil {
		l[address] = map[string]string{}
	}
	l[address][version] = entry
}

// Known are the entries that OpenTofu is to go by: those of the repository's file in the folder terragrunt and, for versions that it does
// not have, what was noted in the folder states. Providers that are there as files are left out.
func Known(terragrunt, states string) (Locks, error) {
	known, err := read(filepath.Join(terragrunt, File))
	if err != nil {
		return nil, err
	}
	noted, err := filepath.Glob(filepath.Join(states, notesFolder, "*", "*", "*", "*.hcl"))
	if err != nil {
		return nil, err
	}
	for _, file := range noted {
		locks, err := read(file)
		if err != nil {
			return nil, err
		}
		for address, versions := range locks {
			for version, entry := range versions {
				if known[address][version] == "" {
					known.add(address, version, entry)
				}
			}
		}
	}
	for address := range known {
		if isFile(address) {
			delete(known, address)
		}
	}
	return known, nil
}

// Note keeps, in the folder states, the entries of the lock file that OpenTofu has written. A provider of which another layer has
// found something else a moment ago is an error: both of them were first uses.
func Note(lockFile, states string) error {
	found, err := read(lockFile)
	if err != nil {
		return err
	}
	for address := range found {
		if isFile(address) {
			delete(found, address)
		}
	}
	return found.note(states)
}

// CheckFetched compares what Fetch has downloaded, by its lock file, with what this cluster first used, and keeps what is new. What the
// repository's file in the folder terragrunt has hashes for was compared with them before it was unpacked. No lock file: the
// providers came with the tools.
func CheckFetched(lockFile, terragrunt, states string) error {
	found, err := read(lockFile)
	if err != nil {
		return err
	}
	known, err := read(filepath.Join(terragrunt, File))
	if err != nil {
		return err
	}
	for address, versions := range known {
		for version := range versions {
			delete(found[address], version)
		}
	}
	return found.note(states)
}

// Unproven are the providers that Fetch has downloaded, by its lock file, and that nothing says what they should be: neither the repository's
// file in the folder terragrunt nor what was noted in the folder states.
func Unproven(lockFile, terragrunt, states string) ([]string, error) {
	found, err := read(lockFile)
	if err != nil {
		return nil, err
	}
	pinned, err := read(filepath.Join(terragrunt, File))
	if err != nil {
		return nil, err
	}
	var unproven []string
	for address, versions := range found {
		for version, entry := range versions {
			if pinned[address][version] != "" {
				continue
			}
			noted, err := read(noteOf(states, address, version))
			if err != nil {
				return nil, err
			}
			if !common(noted[address][version], entry) {
				unproven = append(unproven, address+" "+version)
			}
		}
	}
	slices.Sort(unproven)
	return unproven, nil
}

// noteOf is the file that keeps the entry of a provider's version.
func noteOf(states, address, version string) string {
	return filepath.Join(states, notesFolder, filepath.FromSlash(address), version+".hcl")
}

func (l Locks) note(states string) error {
	for address, versions := range l {
		for version, entry := range versions {
			file := noteOf(states, address, version)
			noted, err := read(file)
			if err != nil {
				return err
			}
			before := noted[address][version]
			switch {
			case before == entry:
				continue
			case before != "" && !common(before, entry):
				return fmt.Errorf("the provider %s %s is not the one that this cluster first used: no hash of it is in %s. Find out why; "+
					"the hashes that %s of the repository has for it decide", address, version, file, File)
			}
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				return err
			}
			if err := renameio.WriteFile(file, []byte(entry), 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

// common says whether two entries have a hash in common.
func common(a, b string) bool {
	hashes := hashForm.FindAllString(b, -1)
	return slices.ContainsFunc(hashForm.FindAllString(a, -1), func(hash string) bool { return slices.Contains(hashes, hash) })
}

// isFile says whether OpenTofu finds the provider in one of the folders that it looks in before it asks a registry (its documentation,
// "Implied Local Mirror Directories"). Its home is the folder for temporary files.
func isFile(address string) bool {
	for _, folder := range []string{filepath.Join(os.TempDir(), ".terraform.d/plugins"), "/usr/local/share/terraform/plugins", "/usr/share/terraform/plugins"} {
		if _, err := os.Stat(filepath.Join(folder, filepath.FromSlash(address))); err == nil {
			return true
		}
	}
	return false
}
