//go:build linux

package talosnodes

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
)

// files are this machine's, by where they are in an image or in a root file system.
type files = map[string]string

// packages are the Debian packages of the machine's own programs that nodes have.
var packages = map[string]string{
	"nft": "nftables", "iptables": "iptables", "iptables-save": "iptables", "iptables-restore": "iptables", "mount": "mount", "umount": "mount", "cp": "coreutils",
}

// found are programs of this machine, as they stand in a node or in an image.
func found(programs ...string) (files, error) {
	all := files{}
	var missing []error
	for _, program := range programs {
		file, err := exec.LookPath(program)
		if err != nil {
			missing = append(missing, fmt.Errorf("%s: apt-get install --no-install-recommends %s", program, packages[program]))
		}
		all["usr/bin/"+program] = file
	}
	return all, errors.Join(missing...)
}

// modules are what iptables loads, and where it looks for them.
func modules() (files, error) {
	there, err := filepath.Glob("/usr/lib/*/xtables/*.so")
	if err == nil && len(there) == 0 {
		err = errors.New("modules of iptables: apt-get install --no-install-recommends iptables")
	}
	all := files{}
	for _, file := range there {
		all[strings.TrimPrefix(file, "/")] = file
	}
	return all, err
}

// withLibraries are files, and the libraries that the programs among them are linked with.
func withLibraries(of files) (files, error) {
	all := maps.Clone(of)
	for _, file := range of {
		if path.Ext(file) == ".so" {
			continue // a module of a program that is here
		}
		libraries, err := librariesOf(file)
		if err != nil {
			return nil, err
		}
		for _, library := range libraries {
			all[path.Join("usr/lib", filepath.Base(library))] = library
		}
	}
	return all, nil
}

// librariesOf are the shared libraries of a program, by where they really are.
func librariesOf(program string) ([]string, error) {
	said, err := exec.Command("ldd", program).CombinedOutput()
	if err != nil {
		if bytes.Contains(said, []byte("not a dynamic executable")) || bytes.Contains(said, []byte("statically linked")) {
			return nil, nil
		}
		return nil, fmt.Errorf("ldd %s: %w: %s", program, err, said)
	}
	var libraries []string
	for lines := bufio.NewScanner(bytes.NewReader(said)); lines.Scan(); {
		for _, word := range strings.Fields(lines.Text()) {
			if filepath.IsAbs(word) {
				libraries = append(libraries, word)
			}
		}
	}
	return libraries, nil
}
