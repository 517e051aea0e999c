//go:build linux

package talosnodes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/google/renameio/v2"
)

// tunables are settings of the whole machine that a kubelet changes (setupKernelTunables in pkg/kubelet/cm/container_manager_linux.go of
// Kubernetes 1.36).
var tunables = []string{"vm/overcommit_memory", "vm/panic_on_oom", "kernel/panic", "kernel/panic_on_oops", "kernel/keys/root_maxkeys", "kernel/keys/root_maxbytes"}

const (
	settingsFolder = "/proc/sys"
	// keptSettings has what the machine was set to before a world changed it. It outlives a world that is killed, and a restart of the machine
	// removes it together with what was changed.
	keptSettings = "/run/castle-nodes-settings.json"
)

// keepTunables remembers the machine's settings in the file kept, where a killed world has not done so before; what it returns puts them
// back and removes the file.
func keepTunables(folder, kept string) (back func() error, err error) {
	before, err := readTunables(folder, kept)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(before)
	if err == nil {
		err = renameio.WriteFile(kept, text, 0o644)
	}
	if err != nil {
		return nil, fmt.Errorf("keep what this machine is set to, since kubelets change it: %w", err)
	}
	return func() error {
		var failed []error
		for tunable, value := range before {
			failed = append(failed, os.WriteFile(filepath.Join(folder, tunable), []byte(value), 0o644))
		}
		if err := errors.Join(failed...); err != nil {
			return err
		}
		return os.Remove(kept)
	}, nil
}

// readTunables are the settings before any world changed them, by their names.
func readTunables(folder, kept string) (map[string]string, error) {
	before := map[string]string{}
	text, err := os.ReadFile(kept)
	if err == nil {
		if err := json.Unmarshal(text, &before); err != nil {
			return nil, fmt.Errorf("%s, which has what this machine was set to before kubelets changed it: %w", kept, err)
		}
		return before, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, tunable := range tunables {
		value, err := os.ReadFile(filepath.Join(folder, tunable))
		if err != nil {
			return nil, err
		}
		before[tunable] = string(value)
	}
	return before, nil
}
