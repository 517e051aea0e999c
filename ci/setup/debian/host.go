package debian

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"slices"
	"strings"
)

const keyring = "/usr/share/keyrings/debian-archive-keyring.gpg"

// UnfitError says why this machine cannot do what was asked, and what would change that. Trying again does not help.
type UnfitError struct {
	Doing    string   // what was asked
	Problems []string // one sentence each
}

func (e *UnfitError) Error() string {
	return fmt.Sprintf("cannot %s here: %s", e.Doing, strings.Join(e.Problems, "; "))
}

// host is the machine as this package looks at it; tests give another one.
type host struct {
	files fs.FS // the root file system
	euid  int
	look  func(command string) (string, error)
}

func thisHost() host { return host{files: os.DirFS("/"), euid: os.Geteuid(), look: exec.LookPath} }

func (h host) has(path string) bool {
	_, err := fs.Stat(h.files, strings.TrimPrefix(path, "/"))
	return err == nil
}

// release reads os-release: the distribution's id, those it derives from, and its code name.
func (h host) release() (ids []string, codename string) {
	for _, path := range []string{"etc/os-release", "usr/lib/os-release"} {
		file, err := h.files.Open(path)
		if err != nil {
			continue
		}
		defer file.Close()
		for lines := bufio.NewScanner(file); lines.Scan(); {
			name, value, _ := strings.Cut(lines.Text(), "=")
			value = strings.Trim(value, `"'`)
			switch name {
			case "ID", "ID_LIKE":
				ids = append(ids, strings.Fields(value)...)
			case "VERSION_CODENAME":
				codename = value
			}
		}
		return ids, codename
	}
	return nil, ""
}

// unfitForRoot lists what keeps this machine from making a root; empty means nothing does.
func (h host) unfitForRoot() []string {
	problems := h.unfitForPackages()
	if _, err := h.look("mmdebstrap"); err != nil {
		problems = append(problems, "mmdebstrap is missing (apt-get install mmdebstrap)")
	}
	if !h.has(keyring) {
		problems = append(problems, keyring+" is missing (apt-get install debian-archive-keyring)")
	}
	return problems
}

// unfitForPackages lists what keeps this machine from installing packages.
func (h host) unfitForPackages() []string {
	var problems []string
	if ids, _ := h.release(); !slices.Contains(ids, "debian") {
		problems = append(problems, "this is not Debian or a system derived from it")
	}
	if h.euid != 0 {
		problems = append(problems, "it needs root")
	}
	return problems
}
