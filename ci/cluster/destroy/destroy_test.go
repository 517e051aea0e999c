package destroy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/hypervisor"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/talos"
)

var (
	unfinished = []string{"unfinished VMs"}
	emptied    = []string{"Flux", "load balancers", "volumes", "Longhorn"}
	inside     = []string{"layer gitops", "layer storage", "layer networking", "layer engine"}
	beneath    = []string{"VM 421", "VM 422", "VM 423", "VM 424", "VM 425", "layer platform", "layer secrets", "note"}
)

func same(t *testing.T, f *fake, want ...[]string) {
	t.Helper()
	if all := slices.Concat(want...); !slices.Equal(f.did, all) {
		t.Errorf("it did\n  %s\nnot\n  %s", strings.Join(f.did, ", "), strings.Join(all, ", "))
	}
}

func TestWhatIsInTheClusterGoesBeforeItsLayersAndTheseBeforeItsMachines(t *testing.T) {
	f := newFake(t)
	d := f.destruction()
	if err := d.execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, f, unfinished, emptied, inside, beneath)
	if text := strings.Join(d.notes, "\n"); !strings.Contains(text, "the states of all") || strings.Contains(text, "not removed by itself") {
		t.Errorf("it says\n%s", text)
	}
}

func TestAClusterWhoseAPIIsSilentGoesWithItsMachines(t *testing.T) {
	f := newFake(t)
	f.silent, f.outside = errors.New("no route to host"), "aws_lb.one"
	f.held[layers.Networking] = append(f.held[layers.Networking], f.outside)
	d := f.destruction()
	if err := d.execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	slices.Sort(f.did[1:5]) // these are done at once
	same(t, f, unfinished, []string{"release engine", "release gitops", "release networking", "release storage"},
		[]string{"layer networking"}, beneath)
	if text := strings.Join(d.notes, "\n"); !strings.Contains(text, "since\n  no route to host") {
		t.Errorf("it says\n%s", text)
	}
}

// Volumes that a dead pod holds keep neither the other layers nor the machines.
func TestWhatStaysInTheClusterKeepsNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		f.stuck["volumes"] = "PersistentVolume pvc-1"
		d := f.destruction()
		if err := d.execute(t.Context()); err != nil {
			t.Fatal(err)
		}
		at := slices.Index(f.did, "layer engine") + 1
		slices.Sort(f.did[at : at+4])
		same(t, f, unfinished, []string{"Flux", "load balancers", "Longhorn", "layer gitops", "layer networking", "layer engine",
			"release engine", "release gitops", "release networking", "release storage"}, beneath)
		if text := strings.Join(d.notes, "\n"); !strings.Contains(text, "  volumes: PersistentVolume pvc-1 stay; nothing has gone for") {
			t.Errorf("it says\n%s", text)
		}
	})
}

func TestNothingIsRemovedWhereSomethingSpeaksAgainstIt(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(*fake)
		did   [][]string
		says  string
	}{
		"the token may not remove machines":                    {func(f *fake) { f.mayRemove = errors.New("it lacks VM.Allocate") }, nil, "VM.Allocate"},
		"a machine is somebody else's":                         {func(f *fake) { f.owned, f.ownedUntil = errors.New("VM 421 has no tag"), 1 }, [][]string{unfinished}, "no tag"},
		"a disk is another VM's":                               {func(f *fake) { f.othersDisks = errors.New("vm-421-disk-9") }, [][]string{unfinished}, "disk-9"},
		"a machine has become somebody else's in the meantime": {func(f *fake) { f.owned, f.ownedUntil = errors.New("VM 421 has no tag"), 2 }, [][]string{unfinished, emptied, inside}, "no tag"},
	} {
		f := newFake(t)
		c.spoil(f)
		if err := f.destruction().execute(t.Context()); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		t.Run(name, func(t *testing.T) { same(t, f, c.did...) })
		if len(f.vms) != len(f.described.Nodes) {
			t.Errorf("%s: %d VMs are left", name, len(f.vms))
		}
	}
}

func TestWhatIsLeftIsNamed(t *testing.T) {
	for name, c := range map[string]struct {
		leave func(*fake)
		says  string
	}{
		"a VM that no state knows": {func(f *fake) {
			f.held[layers.Platform] = nil
			f.vms = map[int]hypervisor.VM{430: {ID: 430, Name: "blue-old", Host: "proxmox", Ours: true}}
		}, "VM 430 blue-old on proxmox is still there"},
		"a disk": {func(f *fake) { f.disks = []error{errors.New("local-lvm:vm-421-disk-0 is still there")} }, "vm-421-disk-0"},
	} {
		f := newFake(t)
		c.leave(f)
		if err := f.destruction().execute(t.Context()); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if !f.unfinished {
			t.Errorf("%s: what is known of unfinished machines is forgotten", name)
		}
	}
}

// Wherever a call is interrupted, before a change or after it, the next one removes what is left.
func TestTheNextCallRemovesWhatAnInterruptedOneHasLeft(t *testing.T) {
	whole := newFake(t)
	if err := whole.destruction().execute(t.Context()); err != nil {
		t.Fatal(err)
	}
	for at := 1; at <= whole.changes; at++ {
		for _, after := range []bool{false, true} {
			ctx, cancel := context.WithCancel(t.Context())
			f := newFake(t)
			f.interruptAt, f.after, f.interrupt = at, after, cancel
			if err := f.destruction().execute(ctx); !errors.Is(err, context.Canceled) {
				t.Errorf("interrupted at %d: %v", at, err)
			}
			if f.changes != at {
				t.Errorf("interrupted at %d, it went on: %v", at, f.did)
			}
			f.interruptAt = 0
			if err := f.destruction().execute(t.Context()); err != nil {
				t.Errorf("after an interruption at %d: %v", at, err)
			}
			for _, what := range slices.Concat(inside, beneath) {
				if !slices.Contains(f.did, what) {
					t.Errorf("after an interruption at %d, %s is still there", at, what)
				}
			}
			if len(f.vms) > 0 || f.unfinished {
				t.Errorf("after an interruption at %d: %v, %t", at, f.vms, f.unfinished)
			}
			cancel()
		}
	}
}

// Machines that castle did not make are given back, each by what it answers.
func TestMachinesOfOthersAreGivenBack(t *testing.T) {
	silent := talos.NodeStatus{State: "silent", Problem: "does not answer"}
	for name, c := range map[string]struct {
		change func(*fake)
		reset  []string
		says   string // the error; empty: none
		notes  string
		kept   bool // the states of secrets and platform
	}{
		"all are the cluster's": {func(*fake) {}, []string{"blue-cp-1", "blue-cp-2"}, "", "of 2 machines 2 in maintenance mode", false},
		"one waits already":     {func(f *fake) { f.status["blue-cp-1"] = talos.NodeStatus{State: talos.InMaintenance} }, []string{"blue-cp-2"}, "", "of 2 machines 2 in", false},
		"one is another cluster's by now": {func(f *fake) { f.status["blue-cp-1"] = talos.NodeStatus{State: talos.IsGhost} }, []string{"blue-cp-2"}, "",
			"blue-cp-1 (192.168.1.211) was left as it is: it answers with another PKI", false},
		"one is silent": {func(f *fake) { f.status["blue-cp-1"] = silent }, []string{"blue-cp-2"}, "blue-cp-1 (192.168.1.211) was left as it is", "of 2 machines 1 in", false},
		"one is silent that cluster.yaml does not list": {func(f *fake) {
			f.known["blue-old"] = state.VM{Address: netip.MustParseAddr("192.168.1.219")}
			f.status["blue-old"] = silent
		}, []string{"blue-cp-1", "blue-cp-2"}, "cluster.yaml does not list blue-old any more", "", true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(t)
				f.described.Platform, f.described.Nodes = config.PlatformTalos, f.described.Nodes[:2]
				f.known = state.VMs{}
				c.change(f)
				d := f.destruction()
				err := d.execute(t.Context())
				if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
					t.Errorf("got %v", err)
				}
				var reset []string
				for _, what := range f.did {
					if node, is := strings.CutPrefix(what, "reset "); is {
						reset = append(reset, node)
					}
				}
				if slices.Sort(reset); !slices.Equal(reset, c.reset) {
					t.Errorf("it has reset %v", reset)
				}
				if text := strings.Join(d.notes, "\n"); !strings.Contains(text, c.notes) {
					t.Errorf("it says\n%s", text)
				}
				if kept := len(f.held[layers.Platform]) > 0; kept != c.kept {
					t.Errorf("the state of platform is kept: %t", kept)
				}
				if at := slices.Index(f.did, "layer engine"); at < 0 || at > slices.IndexFunc(f.did, func(what string) bool { return strings.HasPrefix(what, "reset ") }) {
					t.Errorf("machines are reset before the cluster is empty: %v", f.did)
				}
			})
		})
	}
}

func TestDestroyIsRefusedUnconfirmedOrProtected(t *testing.T) {
	for _, c := range []struct{ confirm, more, says string }{
		{"", "", "confirm with --confirm blue"},
		{"green", "", "confirm with --confirm blue"},
		{"blue", "deletionProtection: true\n", "blue has deletionProtection: true"},
	} {
		text, err := os.ReadFile("../../../terragrunt/live/blue/cluster.yaml")
		if err != nil {
			t.Fatal(err)
		}
		folder, kept := filepath.Join(t.TempDir(), "blue"), t.TempDir()
		err = errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, config.File), append(bytes.Clone(text), c.more...), 0o600))
		if err != nil {
			t.Fatal(err)
		}
		cluster := &run.Cluster{Folder: folder, Layers: "../../../terragrunt", State: kept, AllowUnpinned: true, Out: io.Discard}
		if _, err := Execute(t.Context(), cluster, Options{Confirm: c.confirm}); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("confirmed by %q: %v", c.confirm, err)
		}
		if made, err := os.ReadDir(kept); err != nil || len(made) > 0 {
			t.Errorf("confirmed by %q, something was begun: %v, %v", c.confirm, made, err)
		}
	}
}
