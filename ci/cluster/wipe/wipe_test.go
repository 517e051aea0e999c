package wipe

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/hypervisor"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/run"
)

// fake is a Proxmox and a store of states, which change as the real ones do.
type fake struct {
	mu     sync.Mutex
	vms    map[int]hypervisor.VM
	states []string
	did    []string
	atOnce int // how many VMs have been removed at the same time
	going  int

	notOurs, unlocked, mayRemove error
	stays                        int // a VM that does not go, and whose removal says it has
	disks                        []error
	disowned                     bool

	interruptAt int
	interrupt   context.CancelFunc
}

func newFake() *fake {
	f := &fake{vms: map[int]hypervisor.VM{}, states: []string{"secrets", "platform"}}
	for id := 421; id < 427; id++ {
		f.vms[id] = hypervisor.VM{ID: id, Name: "blue", Host: "pve", Ours: true}
	}
	f.vms[430] = hypervisor.VM{ID: 430, Name: "db", Host: "pve"}
	return f
}

func (f *fake) Condemned(_ context.Context, untagged []int) (remove []hypervisor.VM, stay []hypervisor.Staying, err error) {
	for _, id := range slices.Sorted(maps.Keys(f.vms)) {
		if vm := f.vms[id]; vm.Ours || slices.Contains(untagged, id) {
			remove = append(remove, vm)
		} else {
			stay = append(stay, hypervisor.Staying{VM: vm, Why: "it has not the tag"})
		}
	}
	return remove, stay, nil
}

func (f *fake) Volumes(context.Context, hypervisor.VM) ([]string, error) {
	return []string{"a disk"}, nil
}
func (f *fake) Unreferenced(context.Context, []hypervisor.VM) ([]hypervisor.Leftover, error) {
	return nil, errors.New("the storage is away")
}
func (f *fake) MayRemove(context.Context) error { return f.mayRemove }
func (f *fake) Close()                          {}

func (f *fake) Remove(ctx context.Context, vm hypervisor.VM, volumes []string, _ func(string)) (bool, error) {
	f.mu.Lock()
	f.going++
	f.atOnce = max(f.atOnce, f.going)
	f.mu.Unlock()
	time.Sleep(time.Millisecond)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.going--
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if !slices.Equal(volumes, []string{"a disk"}) {
		return false, errors.New("its volumes are not those that were listed")
	}
	if vm.ID != f.stays {
		delete(f.vms, vm.ID)
	}
	return true, f.change(ctx, "VM")
}

// change notes a change; the one that is to be interrupted ends the call.
func (f *fake) change(ctx context.Context, what string) error {
	f.did = append(f.did, what)
	if len(f.did) == f.interruptAt {
		f.interrupt()
	}
	return ctx.Err()
}

func (f *fake) NotRemoved(context.Context, []hypervisor.VM, []hypervisor.Leftover) ([]error, string) {
	return f.disks, ""
}
func (f *fake) Belongs(context.Context, state.Identity, string) error { return f.notOurs }
func (f *fake) Empty(ctx context.Context, _ time.Time) ([]string, error) {
	emptied := f.states
	f.states = nil
	return emptied, f.change(ctx, "states")
}
func (f *fake) Disown(context.Context) error {
	f.disowned = true
	return nil
}
func (f *fake) Step(_ string, do func(func(string)) (bool, error)) error {
	_, err := do(func(string) {})
	return err
}
func (f *fake) LockStates(context.Context) (func() error, error) {
	return func() error { return nil }, f.unlocked
}

var blue = &config.Cluster{Name: "blue", VMIDs: config.Range{First: 421, Last: 432}}

// wipes lists and removes.
func (f *fake) wipes(ctx context.Context, owner string, untagged ...int) (*Report, error) {
	found := &found{machines: f, states: f, owner: owner}
	if err := found.list(ctx, blue, untagged); err != nil {
		return nil, err
	}
	return found.report, found.wipe(ctx, f)
}

func TestWhatWasListedGoesAndThenTheStates(t *testing.T) {
	f := newFake()
	var report *Report
	var err error
	synctest.Test(t, func(t *testing.T) { report, err = f.wipes(t.Context(), "") }) // in which those that wait do so at the same time
	if err != nil || !report.Done || !slices.Equal(report.States, []string{"secrets", "platform"}) {
		t.Errorf("%+v, %v", report, err)
	}
	if len(f.vms) != 1 || f.disowned || f.did[len(f.did)-1] != "states" {
		t.Errorf("there are %v, the states are disowned: %t; it did %v", f.vms, f.disowned, f.did)
	}
	if f.atOnce != atOnce {
		t.Errorf("%d VMs were removed at the same time", f.atOnce)
	}
	text := report.Text()
	for _, want := range []string{"was removed, with its disks", "VM 430 db on pve: it has not the tag", "copy of each is kept"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
}

func TestStatesOfAnOwnerWhoWasTypedAreNobodysAfterwards(t *testing.T) {
	f := newFake()
	if _, err := f.wipes(t.Context(), "somebody", 430); err != nil || !f.disowned || len(f.vms) > 0 {
		t.Errorf("%v, disowned: %t, %v", err, f.disowned, f.vms)
	}
}

func TestWhatKeepsAWipeFromItsEnd(t *testing.T) {
	all := newFake()
	for name, c := range map[string]struct {
		spoil  func(*fake)
		says   string // the error
		vms    int
		states bool // they are still there
	}{
		"the states are another cluster's":  {func(f *fake) { f.notOurs = &state.NotOurs{} }, "", len(all.vms), true},
		"the states became another's since": {func(f *fake) { f.unlocked = &state.NotOurs{} }, "", len(all.vms), true},
		"another run holds the cluster":     {func(f *fake) { f.unlocked = &state.Locked{Locks: []state.Lock{{ID: "AB"}}} }, "", len(all.vms), true},
		"the token may not remove":          {func(f *fake) { f.mayRemove = errors.New("it lacks VM.Allocate") }, "VM.Allocate", len(all.vms), true},
		"the states' store does not answer, machines go": {func(f *fake) {
			f.notOurs, f.unlocked = &state.Unreachable{Err: errors.New("no route")}, &state.Unreachable{Err: errors.New("no route")}
		}, "the machines are gone; the states are still there", 1, true},
		"a machine is still there":              {func(f *fake) { f.stays = 424 }, "VM 424 blue on pve is still there, or there again", 2, true},
		"a disk is, the states go all the same": {func(f *fake) { f.disks = []error{errors.New("vm-421-disk-0 is still there")} }, "vm-421-disk-0", 1, false},
	} {
		f := newFake()
		c.spoil(f)
		if _, err := f.wipes(t.Context(), ""); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
		if len(f.vms) != c.vms || (len(f.states) > 0) != c.states {
			t.Errorf("%s: there are %v and the states %v", name, f.vms, f.states)
		}
	}
}

func TestTheNextWipeRemovesWhatAnInterruptedOneHasLeft(t *testing.T) {
	whole := newFake()
	if _, err := whole.wipes(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	for at := range len(whole.did) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		f := newFake()
		f.interruptAt, f.interrupt = at+1, cancel
		if _, err := f.wipes(ctx, ""); !errors.Is(err, context.Canceled) {
			t.Errorf("interrupted after %d changes: %v", at+1, err)
		}
		if len(f.vms) > 1 && len(f.states) == 0 {
			t.Errorf("interrupted after %d changes, the states are gone before the machines", at+1)
		}
		f.interruptAt = 0
		report, err := f.wipes(t.Context(), "")
		if err != nil || !report.Done || len(f.vms) != 1 || len(f.states) > 0 {
			t.Errorf("after an interruption after %d changes: %v, %v, %v", at+1, err, f.vms, f.states)
		}
	}
}

func TestAWipeIsRefusedBeforeItAsksAnybody(t *testing.T) {
	text, err := os.ReadFile("../../../terragrunt/live/blue/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		options  Options
		from, to string
		says     string
	}{
		{Options{Confirm: "green"}, "", "", "confirm with --confirm blue"},
		{Options{Confirm: "blue", Untagged: []int{433}}, "", "", "--include-untagged 433 is outside the cluster's range of ids, 421 to 432"},
		{Options{Confirm: "blue"}, "platform: proxmox\n", "platform: proxmox\ndeletionProtection: true\n", "deletionProtection: true"},
	} {
		folder, kept := filepath.Join(t.TempDir(), "blue"), t.TempDir()
		if err := errors.Join(os.Mkdir(folder, 0o700), os.WriteFile(filepath.Join(folder, config.File), []byte(strings.Replace(string(text), c.from, c.to, 1)), 0o600)); err != nil {
			t.Fatal(err)
		}
		_, err := Execute(t.Context(), &run.Cluster{Folder: folder, State: kept, Out: io.Discard}, c.options)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.options, err)
		}
		if made, err := os.ReadDir(kept); err != nil || len(made) > 0 {
			t.Errorf("%+v: something was begun: %v, %v", c.options, made, err)
		}
	}
}
