//go:build linux

package talosnodes

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"tazlab.net/castle/ci/sandbox/talosnodes/inside"
)

// node is one that is on.
type node struct {
	command *exec.Cmd
	groups  []string
	ended   chan struct{}
}

// volumes are what a node keeps through a power cut, as the volumes of a container of `talosctl cluster create` are
// (pkg/provision/providers/docker/node.go of Talos 1.13), by their folders of its disk.
var volumes = map[string]string{
	"var": "var", "system/state": "state", "etc/cni": "cni", "etc/kubernetes": "kubernetes", "usr/libexec/kubernetes": "libexec", "opt": "opt",
}

func (w *World) disk(name string) string { return filepath.Join(w.Dir, "nodes", name) }

// Console is the file that a node's console is written to.
func (w *World) Console(name string) string { return filepath.Join(w.disk(name), "console.log") }

// Start starts a node with what its disk holds, which is nothing at first.
func (w *World) Start(name string, at netip.Addr) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.nodes[name] != nil {
		return fmt.Errorf("%s is on already", name)
	}
	started, err := w.start(name, at)
	if err != nil {
		return fmt.Errorf("start %s: %w", name, err)
	}
	w.nodes[name] = started
	return nil
}

func (w *World) start(name string, at netip.Addr) (*node, error) {
	machine, err := w.machine(name, at)
	if err != nil {
		return nil, err
	}
	description, err := json.Marshal(machine)
	if err != nil {
		return nil, err
	}
	n := &node{groups: []string{filepath.Join(w.cgroup, name)}, ended: make(chan struct{})}
	if err := os.Mkdir(n.groups[0], 0o755); err != nil {
		return nil, err
	}
	group, err := os.Open(n.groups[0])
	if err != nil {
		return nil, err
	}
	defer group.Close()
	console, err := os.OpenFile(w.Console(name), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer console.Close()
	n.command = exec.Command(w.Node)
	n.command.Stdout, n.command.Stderr, n.command.Env = console, console, []string{}
	n.command.SysProcAttr = &unix.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd()),
		Cloneflags: unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC}
	input, err := n.command.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := n.command.Start(); err != nil {
		return nil, errors.Join(err, removeGroup(n.groups[0]))
	}
	go func() {
		_ = n.command.Wait() // how a node ends is nobody's mistake
		close(n.ended)
	}()
	w.cards++
	entered, err := w.enter(name, n.command.Process.Pid)
	n.groups = append(n.groups, entered...)
	if err != nil {
		return nil, errors.Join(err, n.cut())
	}
	err = plug(w.bridge, n.command.Process.Pid, fmt.Sprintf("node%d", w.cards), netip.PrefixFrom(at, w.Address.Bits()), w.Address.Addr())
	if err == nil {
		_, err = input.Write(description)
	}
	if err = errors.Join(err, input.Close()); err != nil {
		return nil, errors.Join(err, n.cut())
	}
	return n, nil
}

// machine prepares a node's disk, and the files that Docker would give a container.
func (w *World) machine(name string, at netip.Addr) (inside.Machine, error) {
	disk := w.disk(name)
	machine := inside.Machine{Hostname: name, Root: filepath.Join(disk, "root"), System: w.system(), UserNamespace: w.limited, Hierarchies: slices.Sorted(maps.Keys(w.hierarchies)),
		Volumes: map[string]string{}, Files: map[string]string{}}
	failed := []error{os.MkdirAll(machine.Root, 0o755)}
	for place, folder := range volumes {
		machine.Volumes[place] = filepath.Join(disk, "disk", folder)
		_, err := os.Stat(machine.Volumes[place])
		if errors.Is(err, fs.ErrNotExist) {
			err = os.MkdirAll(machine.Volumes[place], 0o755)
			if _, brought := os.Stat(filepath.Join(w.system(), place)); brought == nil && err == nil {
				err = os.CopyFS(machine.Volumes[place], os.DirFS(filepath.Join(w.system(), place)))
			}
		}
		failed = append(failed, err)
	}
	for file, text := range map[string]string{
		"hostname": name + "\n", "hosts": fmt.Sprintf("127.0.0.1 localhost\n%s %s\n", at, name), "resolv.conf": fmt.Sprintf("nameserver %s\n", w.Address.Addr()),
	} {
		machine.Files["etc/"+file] = filepath.Join(disk, file)
		failed = append(failed, os.WriteFile(filepath.Join(disk, file), []byte(text), 0o644))
	}
	return machine, errors.Join(failed...)
}

// stopPatience is how long a node may take to end in order.
const stopPatience = 2 * time.Minute

// Stop has a node end in order, as docker stop does: Talos leaves what it holds of etcd and ends its services.
func (w *World) Stop(name string) error {
	n, err := w.taken(name)
	if err != nil {
		return err
	}
	err = n.command.Process.Signal(unix.SIGTERM)
	select {
	case <-n.ended:
	case <-time.After(stopPatience):
		err = errors.Join(err, fmt.Errorf("%s has not ended after %s: %s says why", name, stopPatience, w.Console(name)))
	}
	return errors.Join(err, n.cut())
}

// PowerCut ends a node at once. Its disk stays.
func (w *World) PowerCut(name string) error {
	n, err := w.taken(name)
	if err != nil {
		return err
	}
	return n.cut()
}

// Wipe cuts a node's power where it is on, and empties its disk.
func (w *World) Wipe(name string) error {
	if slices.Contains(w.running(), name) {
		if err := w.PowerCut(name); err != nil {
			return err
		}
	}
	return os.RemoveAll(w.disk(name))
}

// taken is a node that is on, and will not be.
func (w *World) taken(name string) (*node, error) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	n := w.nodes[name]
	if n == nil {
		return nil, fmt.Errorf("%s is not on", name)
	}
	delete(w.nodes, name)
	return n, nil
}

func (w *World) running() []string {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	var all []string
	for name := range w.nodes {
		all = append(all, name)
	}
	return all
}

// cut kills the first process of a node, and the kernel all others with it.
func (n *node) cut() error {
	select {
	case <-n.ended:
	default:
		if err := n.command.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			return err
		}
		<-n.ended
	}
	var failed []error
	for _, group := range n.groups {
		failed = append(failed, removeGroup(group))
	}
	return errors.Join(failed...)
}

// groupPatience is how long the kernel may take to let go of the processes that it killed.
const groupPatience = 10 * time.Second

// removeGroup removes a control group with those below it.
func removeGroup(group string) error {
	for began := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		var groups []string
		err := filepath.WalkDir(group, func(name string, entry fs.DirEntry, err error) error {
			if err == nil && entry.IsDir() {
				groups = append(groups, name)
			}
			return nil // it may be going
		})
		slices.Reverse(groups)
		for _, one := range groups {
			if failed := unix.Rmdir(one); failed != nil && !errors.Is(failed, fs.ErrNotExist) {
				err = fmt.Errorf("remove the control group %s: %w", one, failed)
			}
		}
		if err == nil || time.Since(began) > groupPatience {
			return err
		}
	}
}
