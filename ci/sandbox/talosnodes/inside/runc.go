//go:build linux

package inside

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// RuncName and RealRunc are what a node's runc is called, and what the wrapper before it hands over to.
const (
	RuncName = "runc"
	RealRunc = "/usr/bin/runc.real"
)

// lacking is the capability that root does not have on every machine, containers for example.
const lacking = "CAP_SYS_RESOURCE"

// Limited tells whether root lacks it here.
func Limited() (bool, error) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var held [2]unix.CapUserData
	if err := unix.Capget(&header, &held[0]); err != nil {
		return false, err
	}
	return held[unix.CAP_SYS_RESOURCE/32].Effective&(1<<(unix.CAP_SYS_RESOURCE%32)) == 0, nil
}

// Runc hands a call over to the real runc, and has a container that is to be made fit the machine.
func Runc(args []string) error {
	if slices.Contains(args, "create") || slices.Contains(args, "run") {
		limited, err := Limited()
		if err != nil {
			return err
		}
		var groups unix.Statfs_t
		if err := unix.Statfs("/"+controlGroups, &groups); err != nil {
			return err
		}
		here := machine{limited: limited, version1: groups.Type != unix.CGROUP2_SUPER_MAGIC}
		if err := here.allow(filepath.Join(bundle(args), "config.json")); err != nil {
			return err
		}
	}
	return unix.Exec(RealRunc, append([]string{RealRunc}, args...), os.Environ())
}

func bundle(args []string) string {
	for i, arg := range args[:max(0, len(args)-1)] {
		if arg == "--bundle" || arg == "-b" {
			return args[i+1]
		}
	}
	return "."
}

// machine is what containers have to fit.
type machine struct {
	limited  bool // root has no CAP_SYS_RESOURCE
	version1 bool // control groups are those of version 1
}

// allow rewrites a container's description (config.md of the OCI runtime specification 1.2); what it does not know stays.
func (m machine) allow(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var spec, process map[string]json.RawMessage
	if err := json.Unmarshal(data, &spec); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if err := part(spec["process"], &process); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if m.limited {
		err = errors.Join(err, limit(process))
	}
	if m.version1 {
		err = errors.Join(err, showAll(spec))
	}
	err = errors.Join(err, m.start(process))
	if err = errors.Join(err, put(spec, "process", process)); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if data, err = json.Marshal(spec); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}

// limit takes out what needs CAP_SYS_RESOURCE: the capability itself, and an OOM score below the machine's own.
func limit(process map[string]json.RawMessage) error {
	var score int
	var capabilities map[string][]string
	if err := errors.Join(part(process["oomScoreAdj"], &score), part(process["capabilities"], &capabilities)); err != nil {
		return err
	}
	for set, held := range capabilities {
		capabilities[set] = slices.DeleteFunc(held, func(capability string) bool { return capability == lacking })
	}
	return errors.Join(put(process, "oomScoreAdj", max(0, score)), put(process, "capabilities", capabilities))
}

// showAll has a container that sees the machine's control groups see those of all controllers, which are mounts below the place of cgroup 2.
func showAll(spec map[string]json.RawMessage) error {
	var mounts []map[string]json.RawMessage
	if err := part(spec["mounts"], &mounts); err != nil {
		return err
	}
	for _, mount := range mounts {
		var at, kind string
		if err := errors.Join(part(mount["destination"], &at), part(mount["type"], &kind)); err != nil {
			return err
		}
		if at == "/"+controlGroups && kind == "bind" {
			if err := put(mount, "options", []string{"rbind", "rw"}); err != nil {
				return err
			}
		}
	}
	return put(spec, "mounts", mounts)
}

// start has a kubelet bear that its node's disk is the machine's, however full that is, and control groups of version 1.
func (m machine) start(process map[string]json.RawMessage) error {
	var args []string
	if err := part(process["args"], &args); err != nil || len(args) == 0 || args[0] != KubeletProgram {
		return err
	}
	args = append(args, "--eviction-hard=memory.available<100Mi", "--image-gc-high-threshold=100")
	if m.version1 {
		args = append(args, "--fail-cgroupv1=false")
	}
	return put(process, "args", args)
}

func part(data json.RawMessage, into any) error {
	if data == nil {
		return nil
	}
	return json.Unmarshal(data, into)
}

func put(object map[string]json.RawMessage, name string, value any) error {
	data, err := json.Marshal(value)
	if object != nil {
		object[name] = data
	}
	return err
}
