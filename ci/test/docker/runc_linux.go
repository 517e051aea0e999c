package docker

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// sysResource is the capability that build machines withhold most often. A privileged container asks for every
// capability that the kernel knows, and runc refuses to start one that it cannot give them.
const sysResource = "CAP_SYS_RESOURCE"

// lacksSysResource tells whether no process started here can have it.
func lacksSysResource() (bool, error) {
	has, err := unix.PrctlRetInt(unix.PR_CAPBSET_READ, unix.CAP_SYS_RESOURCE, 0, 0, 0)
	if err != nil {
		return false, fmt.Errorf("read the capability bounding set: %w", err)
	}
	return has == 0, nil
}

// becomeRunc takes the capability out of the file that the command line names, where it starts a process, and becomes
// runc.
func becomeRunc(args []string) error {
	if file := processFile(args); file != "" {
		if err := dropCapability(file, sysResource); err != nil {
			return err
		}
	}
	runc, err := exec.LookPath("runc")
	if err != nil {
		return err
	}
	return unix.Exec(runc, append([]string{runc}, args...), os.Environ())
}

// processFile is the file with the capabilities of the process that a runc command line starts: the bundle's
// config.json, or what exec is told to read.
func processFile(args []string) string {
	value := func(names ...string) string {
		for i, arg := range args {
			name, value, joined := strings.Cut(arg, "=")
			switch {
			case !slices.Contains(names, name):
			case joined:
				return value
			case i+1 < len(args):
				return args[i+1]
			}
		}
		return ""
	}
	switch {
	case slices.Contains(args, "create"), slices.Contains(args, "run"):
		return filepath.Join(value("--bundle", "-b"), "config.json")
	case slices.Contains(args, "exec"):
		return value("--process", "-p")
	default:
		return ""
	}
}

// dropCapability removes a capability from all sets of the process in an OCI runtime configuration (config.json) or in
// a process alone. Everything else in the file keeps its value.
func dropCapability(file, capability string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber() // limits beyond 2⁵³ stay exact
	var config map[string]any
	if err := decoder.Decode(&config); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	process, whole := config["process"].(map[string]any)
	if !whole {
		process = config
	}
	sets, ok := process["capabilities"].(map[string]any)
	if !ok {
		return nil
	}
	for name, set := range sets {
		if list, ok := set.([]any); ok {
			sets[name] = slices.DeleteFunc(list, func(entry any) bool { return entry == capability })
		}
	}
	if text, err = json.Marshal(config); err != nil {
		return err
	}
	return os.WriteFile(file, text, 0o600)
}
