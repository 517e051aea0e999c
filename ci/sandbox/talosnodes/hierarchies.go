//go:build linux

package talosnodes

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// hierarchiesFolder is where a machine that has both versions of control groups mounts those of version 1, each below its controller's name.
const hierarchiesFolder = "/sys/fs/cgroup"

// hierarchies are the controllers of version 1 that pods are limited by where cgroup 2 has none of its own; none where it has.
func hierarchies() ([]string, error) {
	mounted, err := cgroups()
	if err != nil {
		return nil, err
	}
	there, err := controllersOf(mounted)
	if err != nil || slices.Contains(there, "memory") {
		return nil, err
	}
	entries, err := os.ReadDir(hierarchiesFolder)
	var all []string
	for _, entry := range entries {
		var about unix.Statfs_t
		if err := unix.Statfs(filepath.Join(hierarchiesFolder, entry.Name()), &about); err == nil && about.Type == unix.CGROUP_SUPER_MAGIC && entry.IsDir() {
			all = append(all, entry.Name())
		}
	}
	if err == nil && !slices.Contains(all, "memory") {
		err = fmt.Errorf("the controller memory, which is neither cgroup 2's nor mounted in %s", hierarchiesFolder)
	}
	return all, err
}

// makeHierarchies makes the group of all nodes in each hierarchy, by its controller.
func (w *World) makeHierarchies(name string) error {
	controllers, err := hierarchies()
	if err != nil {
		return err
	}
	w.hierarchies = map[string]string{}
	for _, controller := range controllers {
		group := filepath.Join(hierarchiesFolder, controller, name)
		if err := os.Mkdir(group, 0o755); err != nil {
			return err
		}
		w.hierarchies[controller] = group
		w.onClose(func() { _ = removeGroup(group) })
	}
	if group := w.hierarchies["cpuset"]; group != "" {
		return allowAll(group)
	}
	return nil
}

// allowAll lets a group and those below it have the machine's processors and memory; in version 1 a new group has none.
func allowAll(group string) error {
	for _, setting := range []string{"cpuset.cpus", "cpuset.mems"} {
		all, err := os.ReadFile(filepath.Join(filepath.Dir(group), setting))
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(group, setting), all, 0o644); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(group, "cgroup.clone_children"), []byte("1"), 0o644)
}

// enter makes groups of version 1 for a node and puts its process into them.
func (w *World) enter(name string, pid int) (groups []string, err error) {
	for _, of := range w.hierarchies {
		group := filepath.Join(of, name)
		groups = append(groups, group)
		if err := os.Mkdir(group, 0o755); err != nil {
			return groups, err
		}
		if err := os.WriteFile(filepath.Join(group, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0o644); err != nil {
			return groups, err
		}
	}
	return groups, nil
}
