package wipe

import (
	"context"
	"time"

	"tazlab.net/castle/ci/cluster/hypervisor"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/run"
)

// proxmox has the VMs.
type proxmox interface {
	Condemned(ctx context.Context, untagged []int) (remove []hypervisor.VM, stay []hypervisor.Staying, err error)
	Volumes(ctx context.Context, vm hypervisor.VM) ([]string, error)
	Unreferenced(ctx context.Context, vms []hypervisor.VM) ([]hypervisor.Leftover, error)
	MayRemove(ctx context.Context) error
	Remove(ctx context.Context, vm hypervisor.VM, volumes []string, tell func(string)) (did bool, err error)
	NotRemoved(ctx context.Context, removed []hypervisor.VM, kept []hypervisor.Leftover) (left []error, unseen string)
	Close()
}

// states are those of the layers, as files.
type states interface {
	Belongs(ctx context.Context, me state.Identity, typed string) error
	Empty(ctx context.Context, now time.Time) (emptied []string, err error)
	Disown(ctx context.Context) error
}

// session is what a wipe asks of the run that it is.
type session interface {
	Step(name string, do func(tell func(string)) (did bool, err error)) error
	// LockStates locks the states for other machines, once they are known to be the cluster's.
	LockStates(ctx context.Context) (free func() error, err error)
}

// running is the session of a real run.
type running struct {
	cluster *run.Cluster
	record  *run.Record
	store   state.Store
	me      state.Identity
}

func (r running) Step(name string, do func(func(string)) (bool, error)) error {
	return r.record.Step(r.cluster.Description.Name, name, do)
}

func (r running) LockStates(ctx context.Context) (func() error, error) {
	return r.cluster.TakeStates(ctx, r.store, r.me, r.record.Command, func(state.Lock) error { return nil })
}
