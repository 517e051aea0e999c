//go:build linux

// Package inside is what runs in a real Talos node before and beside Talos: see ci/cmd/castle-node, whose size it decides.
package inside

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// Machine is what Boot is given, as JSON, once the machine's network is there.
type Machine struct {
	Hostname string `json:"hostname"`
	// Root is an empty folder that the root file system is put together at.
	Root string `json:"root"`
	// System is Talos's root file system, which is mounted read-only.
	System string `json:"system"`
	// Volumes are folders by where they are in the machine: what outlives a power cut.
	Volumes map[string]string `json:"volumes"`
	// Files are single files, the same way.
	Files map[string]string `json:"files"`
	// UserNamespace has machined believe that it is in a user namespace, so that it does without what the machine's root may not do.
	UserNamespace bool `json:"userNamespace"`
	// Hierarchies are controllers of cgroup version 1, which are mounted in place of cgroup 2.
	Hierarchies []string `json:"hierarchies"`
}

// mount is one file system of the machine, below its root.
type mount struct {
	kind, at, options string
	flags             uintptr
}

const plain = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC

// mounts are what Docker gives a container of `talosctl cluster create` (pkg/provision/providers/docker of Talos 1.13), and a cgroup
// namespace's own view of cgroup 2.
var mounts = []mount{
	{kind: "proc", at: "proc", flags: plain},
	{kind: "sysfs", at: "sys", flags: plain},
	{kind: "cgroup2", at: controlGroups, flags: plain},
	{kind: "tmpfs", at: "dev", options: "mode=755", flags: unix.MS_NOSUID},
	{kind: "devpts", at: "dev/pts", options: "newinstance,ptmxmode=0666,mode=620", flags: unix.MS_NOSUID | unix.MS_NOEXEC},
	{kind: "tmpfs", at: "dev/shm", flags: unix.MS_NOSUID | unix.MS_NODEV},
	{kind: "mqueue", at: "dev/mqueue", flags: plain},
	{kind: "tmpfs", at: "run", options: "mode=755", flags: unix.MS_NOSUID | unix.MS_NODEV},
	{kind: "tmpfs", at: "system", options: "mode=755", flags: unix.MS_NOSUID | unix.MS_NODEV},
	{kind: "tmpfs", at: "tmp", flags: unix.MS_NOSUID | unix.MS_NODEV},
}

const controlGroups = "sys/fs/cgroup"

// mounts are those of this machine.
func (m Machine) mounts() []mount {
	if len(m.Hierarchies) == 0 {
		return mounts
	}
	var all []mount
	for _, one := range mounts {
		if one.at != controlGroups {
			all = append(all, one)
			continue
		}
		all = append(all, mount{kind: "tmpfs", at: controlGroups, options: "mode=755", flags: plain})
		for _, controller := range m.Hierarchies {
			options := controller
			if controller == "systemd" { // it has no controller
				options = "none,name=systemd"
			}
			all = append(all, mount{kind: "cgroup", at: filepath.Join(controlGroups, controller), options: options, flags: plain})
		}
	}
	return all
}

// devices are those of /dev, by their numbers.
var devices = map[string][2]uint32{
	"null": {1, 3}, "zero": {1, 5}, "full": {1, 7}, "random": {1, 8}, "urandom": {1, 9}, "kmsg": {1, 11}, "tty": {5, 0}, "fuse": {10, 229},
}

var links = map[string]string{
	"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
}

// Boot waits for the machine's description, makes its root file system, and becomes Talos's first process. The calling process is the first
// of PID, mount, network, UTS and IPC namespaces, and the thread is the process's first.
func Boot(description io.Reader) error {
	var m Machine
	if err := json.NewDecoder(description).Decode(&m); err != nil {
		return fmt.Errorf("read what machine this is: %w", err)
	}
	if err := unix.Unshare(unix.CLONE_NEWCGROUP); err != nil { // its own group has been entered by now
		return fmt.Errorf("enter a cgroup namespace: %w", err)
	}
	if err := unix.Sethostname([]byte(m.Hostname)); err != nil {
		return err
	}
	if err := m.furnish(); err != nil {
		return err
	}
	if err := pivot(m.Root); err != nil {
		return fmt.Errorf("enter the root file system: %w", err)
	}
	return unix.Exec("/sbin/init", []string{"/sbin/init"}, []string{"PATH=/usr/bin", "PLATFORM=container", "TALOSSKU=2CPU-2048RAM"})
}

func (m Machine) furnish() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return err
	}
	if err := bind(m.System, m.Root); err != nil {
		return err
	}
	at := func(name string) string { return filepath.Join(m.Root, name) }
	for _, mount := range m.mounts() {
		if err := os.MkdirAll(at(mount.at), 0o755); err != nil {
			return err
		}
		if err := unix.Mount(mount.kind, at(mount.at), mount.kind, mount.flags, mount.options); err != nil {
			return fmt.Errorf("mount %s at /%s: %w", mount.kind, mount.at, err)
		}
		if mount.at == "dev" {
			if err := populate(at("dev")); err != nil {
				return err
			}
		}
	}
	for name, folder := range m.Volumes {
		if err := errors.Join(os.MkdirAll(at(name), 0o755), bind(folder, at(name))); err != nil {
			return err
		}
	}
	for name, file := range m.Files {
		if err := bind(file, at(name)); err != nil {
			return err
		}
	}
	if m.UserNamespace {
		if err := pretend(at("run/uid_map"), at("proc/1/uid_map")); err != nil {
			return err
		}
	}
	return unix.Mount("", m.Root, "", unix.MS_REMOUNT|unix.MS_BIND|unix.MS_RDONLY, "")
}

func populate(dev string) error {
	before := unix.Umask(0)
	defer unix.Umask(before)
	for name, number := range devices {
		if err := unix.Mknod(filepath.Join(dev, name), unix.S_IFCHR|0o666, int(unix.Mkdev(number[0], number[1]))); err != nil {
			return fmt.Errorf("make the device %s: %w", name, err)
		}
	}
	for name, target := range links {
		if err := os.Symlink(target, filepath.Join(dev, name)); err != nil {
			return err
		}
	}
	return nil
}

// pretend puts a map of user ids in place that is not the machine's own, but that of a user namespace: AdjustOOMScore in pkg/sys of
// containerd, which machined calls, takes a refusal then.
func pretend(file, at string) error {
	return errors.Join(os.WriteFile(file, []byte("         0          0 4294967294\n"), 0o444), bind(file, at))
}

func bind(what, at string) error {
	if err := unix.Mount(what, at, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount %s at %s: %w", what, at, err)
	}
	return nil
}

func pivot(root string) error {
	if err := unix.Chdir(root); err != nil {
		return err
	}
	if err := unix.PivotRoot(".", "."); err != nil {
		return err
	}
	if err := unix.Unmount(".", unix.MNT_DETACH); err != nil {
		return err
	}
	return unix.Chdir("/")
}
