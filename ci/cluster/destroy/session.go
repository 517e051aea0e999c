package destroy

import (
	"context"
	"maps"
	"slices"
	"time"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/hypervisor"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/talos"
	"tazlab.net/castle/ci/cluster/teardown"
)

// session is what destroy asks of the run that it is.
type session interface {
	LayerStep(layer, name string, do func(tell func(string)) (did bool, err error)) error
	Failure(ctx context.Context, err error) error
	Proxmox() proxmox
	Machines(known state.VMs) ([]config.Node, machines, error)
	// API connects to the cluster's API, if that is ready within a limit.
	API(ctx context.Context, limit time.Duration) (contents, error)
	RemoveUnfinished(ctx context.Context) error
	OwnMachines(ctx context.Context) (state.VMs, error)
	OthersDisksStay(ctx context.Context, known state.VMs) error
	DestroyLayers(ctx context.Context, which []layers.Layer, grace time.Duration) error
}

// states are those of the layers.
type states interface {
	Resources(ctx context.Context, layer string) ([]string, error)
	VMs(ctx context.Context) (state.VMs, error)
	Begun(ctx context.Context) ([]int, error)
	Release(ctx context.Context, layer string, now time.Time) ([]string, error)
	ForgetUnfinished(ctx context.Context) error
}

// proxmox has the VMs.
type proxmox interface {
	MayRemove(ctx context.Context) error
	VMs(ctx context.Context) ([]hypervisor.VM, error)
	Mine(ctx context.Context, begun []int) ([]hypervisor.VM, error)
	Unreferenced(ctx context.Context, vms []hypervisor.VM) ([]hypervisor.Leftover, error)
	NotRemoved(ctx context.Context, removed []hypervisor.VM, kept []hypervisor.Leftover) (left []error, unseen string)
	LeftoversOf(ctx context.Context, nodes []config.Node) ([]hypervisor.Leftover, error)
	Close()
}

// machines answer by Talos's API.
type machines interface {
	StatusOf(ctx context.Context, node string) (talos.NodeStatus, error)
	GiveBack(ctx context.Context, node string, graceful bool) error
	AwaitMaintenance(ctx context.Context, node string, limit time.Duration, tell func(string)) error
	Close()
}

// contents are what lives in the cluster.
type contents interface {
	RemoveFlux(ctx context.Context, tell func(string)) (did bool, err error)
	RemoveLoadBalancers(ctx context.Context, tell func(string)) (did bool, err error)
	RemoveVolumes(ctx context.Context, tell func(string)) (did bool, err error)
	LetLonghornGo(ctx context.Context, tell func(string)) (did bool, err error)
	While(ctx context.Context, patience time.Duration, do func(context.Context) error) error
}

// running is the session of a real run.
type running struct {
	cluster *run.Cluster
	record  *run.Record
	access  *run.Access
}

func (r running) LayerStep(layer, name string, do func(func(string)) (bool, error)) error {
	return r.record.LayerStep(r.cluster.Description.Name, layer, name, do)
}

func (r running) Failure(ctx context.Context, err error) error {
	return r.cluster.PlatformFailure(ctx, r.record, err)
}

func (r running) Proxmox() proxmox { return r.cluster.Hypervisor(r.access) }

func (r running) Machines(known state.VMs) ([]config.Node, machines, error) {
	all := r.cluster.WithPresent(known)
	machines, err := all.Machines(r.access)
	return all.Description.Nodes, machines, err
}

func (r running) API(ctx context.Context, limit time.Duration) (contents, error) {
	connection, err := r.access.API()
	if err != nil {
		return nil, err
	}
	if err := connection.AskFor(ctx, limit, connection.Ready); err != nil {
		return nil, err
	}
	return teardown.Of(connection)
}

func (r running) RemoveUnfinished(ctx context.Context) error {
	return r.cluster.RemoveUnfinished(ctx, r.record, r.access, true)
}

func (r running) OwnMachines(ctx context.Context) (state.VMs, error) {
	return r.cluster.OwnMachines(ctx, r.access)
}

func (r running) OthersDisksStay(ctx context.Context, known state.VMs) error {
	return r.cluster.OthersDisksStay(ctx, r.access, known, slices.Collect(maps.Keys(known)))
}

func (r running) DestroyLayers(ctx context.Context, which []layers.Layer, grace time.Duration) error {
	return r.cluster.DestroyLayers(ctx, r.record, r.access, which, grace)
}
