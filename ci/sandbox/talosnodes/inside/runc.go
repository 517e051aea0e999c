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

// Runc hands a call over to the real runc, and takes out of a container that is to be made what needs CAP_SYS_RESOURCE: the capability
// itself, and an OOM score below the machine's own.
func Runc(args []string) error {
	if slices.Contains(args, "create") || slices.Contains(args, "run") {
		if err := allow(filepath.Join(bundle(args), "config.json")); err != nil {
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

// allow rewrites a container's description (config.md of the OCI runtime specification 1.2); what it does not know stays.
func allow(file string) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var spec, process map[string]json.RawMessage
	var score int
	var capabilities map[string][]string
	if err := json.Unmarshal(data, &spec); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	err = errors.Join(part(spec["process"], &process), part(process["oomScoreAdj"], &score), part(process["capabilities"], &capabilities))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	for set, held := range capabilities {
		capabilities[set] = slices.DeleteFunc(held, func(capability string) bool { return capability == lacking })
	}
	err = errors.Join(put(process, "oomScoreAdj", max(0, score)), put(process, "capabilities", capabilities), put(spec, "process", process))
	if err != nil {
		return err
	}
	if data, err = json.Marshal(spec); err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
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
