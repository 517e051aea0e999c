package destroy

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"
	"time"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/hypervisor"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/talos"
	"tazlab.net/castle/ci/cluster/teardown"
)

// fake is a cluster with what is around it: states, VMs, machines, and what lives in it. It changes as the real ones do.
type fake struct {
	mu        sync.Mutex
	described *config.Cluster
	did       []string // what was changed, in order

	held       map[string][]string // resources by layer
	outside    string              // a resource that does not live in the cluster
	known      state.VMs
	vms        map[int]hypervisor.VM
	begun      []int
	disks      []error // that stay when the VMs are gone
	unfinished bool    // the note is there

	mayRemove, owned, othersDisks error
	ownedLooks                    int   // how often somebody looked whose the machines are
	ownedUntil                    int   // from this look on they are somebody else's; 0 for never
	silent                        error // why the API does not answer
	stuck                         map[string]string
	status                        map[string]talos.NodeStatus

	interruptAt int  // which of its changes is interrupted, from 1; 0 for none
	after       bool // it is made all the same
	changes     int
	interrupt   context.CancelFunc
}

// newFake is blue, created.
func newFake(t *testing.T) *fake {
	t.Helper()
	described, err := config.Load("../../../terragrunt/live/blue")
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{described: described, held: map[string][]string{}, known: state.VMs{}, vms: map[int]hypervisor.VM{}, unfinished: true,
		stuck: map[string]string{}, status: map[string]talos.NodeStatus{}}
	for _, layer := range layers.All {
		f.held[layer.Name] = []string{layer.Name + ".one"}
	}
	for _, node := range described.Nodes {
		f.known[node.Name] = state.VM{ID: node.VMID, Host: node.Host, Role: node.Role, Address: node.Address}
		f.vms[node.VMID] = hypervisor.VM{ID: node.VMID, Name: node.Name, Host: node.Host, Status: hypervisor.Running, Ours: true}
		f.status[node.Name] = talos.NodeStatus{Name: node.Name, State: talos.IsConfigured}
	}
	return f
}

func (f *fake) destruction() *destruction {
	return &destruction{session: f, described: f.described, states: ofStates{f}}
}

// change changes something, unless it is interrupted.
func (f *fake) change(ctx context.Context, what string, change func()) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	f.changes++
	interrupted := f.changes == f.interruptAt
	if !interrupted || f.after {
		change()
		f.did = append(f.did, what)
	}
	if interrupted {
		f.interrupt()
		return context.Cause(ctx)
	}
	return nil
}

func (f *fake) LayerStep(_, _ string, do func(func(string)) (bool, error)) error {
	_, err := do(func(string) {})
	return err
}
func (f *fake) Failure(_ context.Context, err error) error { return err }
func (f *fake) Proxmox() proxmox                           { return f }
func (f *fake) Close()                                     {}

func (f *fake) API(context.Context, time.Duration) (contents, error) { return f, f.silent }

func (f *fake) RemoveUnfinished(ctx context.Context) error {
	return f.change(ctx, "unfinished VMs", func() { f.begun = nil })
}

func (f *fake) OwnMachines(context.Context) (state.VMs, error) {
	f.ownedLooks++
	if f.ownedUntil > 0 && f.ownedLooks >= f.ownedUntil {
		return nil, f.owned
	}
	return f.known, nil
}

func (f *fake) OthersDisksStay(context.Context, state.VMs) error { return f.othersDisks }

func (f *fake) DestroyLayers(ctx context.Context, which []layers.Layer, _ time.Duration) error {
	for _, layer := range slices.Backward(layers.All) {
		if !slices.ContainsFunc(which, func(one layers.Layer) bool { return one.Name == layer.Name }) || len(f.held[layer.Name]) == 0 {
			continue
		}
		if layer.Name == layers.Platform {
			for _, vm := range slices.Sorted(maps.Keys(f.vms)) {
				if err := f.change(ctx, fmt.Sprintf("VM %d", vm), func() { delete(f.vms, vm) }); err != nil {
					return err
				}
			}
		}
		err := f.change(ctx, "layer "+layer.Name, func() {
			f.held[layer.Name] = nil
			if layer.Name == layers.Platform {
				f.known = state.VMs{}
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *fake) Resources(_ context.Context, layer string) ([]string, error) {
	return f.held[layer], nil
}
func (f *fake) Begun(context.Context) ([]int, error) { return f.begun, nil }

func (f *fake) Release(ctx context.Context, layer string, _ time.Time) (released []string, err error) {
	err = f.change(context.WithoutCancel(ctx), "release "+layer, func() { // files are written all the same
		released = f.held[layer]
		f.held[layer] = slices.DeleteFunc(slices.Clone(released), func(resource string) bool { return resource != f.outside })
	})
	return released, err
}

func (f *fake) ForgetUnfinished(ctx context.Context) error {
	return f.change(ctx, "note", func() { f.unfinished = false })
}

func (f *fake) MayRemove(context.Context) error { return f.mayRemove }

func (f *fake) Mine(context.Context, []int) (mine []hypervisor.VM, err error) {
	for _, vm := range f.vms {
		if vm.Ours {
			mine = append(mine, vm)
		}
	}
	return mine, nil
}

func (f *fake) Unreferenced(context.Context, []hypervisor.VM) ([]hypervisor.Leftover, error) {
	return nil, nil
}

func (f *fake) NotRemoved(context.Context, []hypervisor.VM, []hypervisor.Leftover) ([]error, string) {
	return f.disks, ""
}

func (f *fake) LeftoversOf(context.Context, []config.Node) ([]hypervisor.Leftover, error) {
	return nil, nil
}

// ofStates is the fake as the states see it: Proxmox has a method VMs, too.
type ofStates struct{ *fake }

func (f ofStates) VMs(context.Context) (state.VMs, error) { return f.known, nil }

func (f *fake) VMs(context.Context) ([]hypervisor.VM, error) {
	return slices.Collect(maps.Values(f.vms)), nil
}

func (f *fake) RemoveFlux(ctx context.Context, tell func(string)) (bool, error) {
	return f.inside(ctx, "Flux", tell)
}
func (f *fake) RemoveLoadBalancers(ctx context.Context, tell func(string)) (bool, error) {
	return f.inside(ctx, "load balancers", tell)
}
func (f *fake) RemoveVolumes(ctx context.Context, tell func(string)) (bool, error) {
	return f.inside(ctx, "volumes", tell)
}
func (f *fake) LetLonghornGo(ctx context.Context, tell func(string)) (bool, error) {
	return f.inside(ctx, "Longhorn", tell)
}

func (f *fake) inside(ctx context.Context, what string, tell func(string)) (bool, error) {
	if held := f.stuck[what]; held != "" {
		tell(held)
		<-ctx.Done()
		return true, ctx.Err()
	}
	return true, f.change(ctx, what, func() {})
}

func (f *fake) While(ctx context.Context, patience time.Duration, do func(context.Context) error) error {
	stalled := &teardown.Stalled{For: patience}
	bounded, cancel := context.WithTimeoutCause(ctx, patience, stalled)
	defer cancel()
	err := do(bounded)
	if err != nil && ctx.Err() == nil && errors.Is(context.Cause(bounded), stalled) {
		return stalled
	}
	return err
}

func (f *fake) Machines(known state.VMs) ([]config.Node, machines, error) {
	nodes := slices.Clone(f.described.Nodes)
	for _, name := range slices.Sorted(maps.Keys(known)) {
		if _, is := f.described.Node(name); !is {
			nodes = append(nodes, config.Node{Name: name, Address: known[name].Address})
		}
	}
	return nodes, f, nil
}

func (f *fake) StatusOf(_ context.Context, node string) (talos.NodeStatus, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.status[node], nil
}

func (f *fake) GiveBack(ctx context.Context, node string, _ bool) error {
	return f.change(ctx, "reset "+node, func() { f.status[node] = talos.NodeStatus{Name: node, State: talos.InMaintenance} })
}

func (f *fake) AwaitMaintenance(ctx context.Context, node string, limit time.Duration, _ func(string)) error {
	if seen, _ := f.StatusOf(ctx, node); seen.State != talos.InMaintenance {
		return fmt.Errorf("%s is not in maintenance mode after %s", node, limit)
	}
	return nil
}
