//go:build linux

package talosnodes

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"

	"golang.org/x/sys/unix"
)

// Unshare is the command before a program that starts nodes: namespaces that end with it, and with them all that was started.
const Unshare = "unshare --net --mount --pid --fork --mount-proc --kill-child"

// Missing tells all at once what this machine lacks for such nodes, and what to do; nil where there is nothing.
func (o Options) Missing() error {
	var lacks []error
	if os.Geteuid() != 0 {
		lacks = append(lacks, errors.New("root: namespaces, mounts and control groups are made"))
	}
	if _, err := cgroups(); err != nil {
		lacks = append(lacks, err)
	}
	if _, err := exec.LookPath("runc"); err != nil && !o.official() {
		lacks = append(lacks, errors.New("runc: apt-get install --no-install-recommends runc"))
	}
	if others, err := interfaces(); err != nil || len(others) > 0 {
		lacks = append(lacks, errors.Join(err, fmt.Errorf("namespaces of its own (this one has %d network interfaces): put `%s` before the command", len(others), Unshare)))
	}
	if len(lacks) > 0 {
		return fmt.Errorf("real Talos nodes need what is not here: %w", errors.Join(lacks...))
	}
	return nil
}

// cgroups is where cgroup 2 is mounted, for its own sake or beside version 1.
func cgroups() (string, error) {
	places := []string{"/sys/fs/cgroup", "/sys/fs/cgroup/unified"}
	for _, place := range places {
		var about unix.Statfs_t
		if err := unix.Statfs(place, &about); err != nil || about.Type != unix.CGROUP2_SUPER_MAGIC {
			continue
		}
		if err := unix.Access(place, unix.W_OK); err != nil {
			return "", fmt.Errorf("cgroup 2 at %s that can be written to: %w", place, err)
		}
		return place, nil
	}
	return "", fmt.Errorf("cgroup 2, which is mounted at none of %q", places)
}

// interfaces are those of the network namespace but its loopback and the nodes' own.
func interfaces() ([]string, error) {
	all, err := net.Interfaces()
	var others []string
	for _, one := range all {
		if one.Flags&net.FlagLoopback == 0 && one.Name != bridgeName {
			others = append(others, one.Name)
		}
	}
	return others, err
}
