// Package wipe removes a cluster where nothing but Proxmox can be relied on: no state is read, no layer is run, and neither Infisical nor
// the cluster's API is asked. What goes is known by its id and its tag together, and was listed before.
package wipe

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/run"
)

// Options say what else goes, and that it may.
type Options struct {
	// Confirm is the cluster's name; where it is empty, what would go is listed and nothing is done.
	Confirm string
	// Untagged are ids in the cluster's range whose VMs go although they have not its tag, such as clones that were never finished.
	Untagged []int
	// Owner is the ID of the owner of the states, typed where it cannot be told otherwise that they are this
	// cluster's.
	Owner string
}

// atOnce is how many VMs are removed at the same time.
const atOnce = 4

// Execute lists what would go or, confirmed, removes it and looks whether it is gone.
func Execute(ctx context.Context, cluster *run.Cluster, options Options) (*Report, error) {
	if err := cluster.Load(); err != nil {
		return nil, err
	}
	name := cluster.Description.Name
	if !cluster.Description.MakesMachines() {
		return nil, fmt.Errorf("nuclear-wipe removes VMs by Proxmox's API, and cluster %s is on platform %s, whose machines castle did not make and cannot remove; nothing was changed. "+
			"destroy resets each that answers with the cluster's own PKI; one that does not is wiped at its console, or by the hypervisor that it is on", name, cluster.Description.Platform)
	}
	if options.Confirm != "" && options.Confirm != name {
		return nil, fmt.Errorf("nuclear-wipe removes cluster %s and all that is stored in it: confirm with --confirm %s; without it, what would go is listed", name, name)
	}
	for _, id := range options.Untagged {
		if ids := cluster.Description.VMIDs; !ids.Contains(id) {
			return nil, fmt.Errorf("--include-untagged %d is outside the cluster's range of ids, %d to %d", id, ids.First, ids.Last)
		}
	}
	cluster.Owner = options.Owner
	if options.Confirm == "" {
		found, err := look(ctx, cluster, options)
		if err != nil {
			return nil, err
		}
		found.close()
		return found.report, nil
	}
	if err := cluster.MayBeRemoved("nuclear-wipe"); err != nil {
		return nil, err
	}
	cluster.Flags = []string{"--confirm", name}
	for _, id := range options.Untagged {
		cluster.Flags = append(cluster.Flags, fmt.Sprintf("--include-untagged %d", id))
	}
	if options.Owner != "" {
		cluster.Flags = append(cluster.Flags, "--owner "+options.Owner)
	}
	var report *Report
	_, err := cluster.Execute(ctx, "nuclear-wipe", func(ctx context.Context, record *run.Record) error {
		found, err := look(ctx, cluster, options)
		if err != nil {
			return cluster.PlatformFailure(ctx, record, err)
		}
		defer found.close()
		report = found.report
		if err := found.wipe(ctx, running{cluster, record, found.store, found.me}); err != nil {
			return cluster.PlatformFailure(ctx, record, err)
		}
		return nil
	})
	return report, err
}

// found is what a wipe acts on.
type found struct {
	report   *Report
	machines proxmox
	states   states
	owner    string // whose the states are, typed by a person; "" for the cluster

	store state.Store
	me    state.Identity
	close func()
}

// look opens Proxmox, and lists what would go.
func look(ctx context.Context, cluster *run.Cluster, options Options) (*found, error) {
	verified, err := cluster.VerifyProxmox(ctx)
	if err != nil {
		return nil, err
	}
	machines, store, me, err := cluster.Alone()
	if err != nil {
		verified()
		return nil, err
	}
	f := &found{machines: machines, states: store, owner: cluster.Owner, store: store, me: me, close: func() {
		machines.Close()
		verified()
	}}
	if err := f.list(ctx, cluster.Description, options.Untagged); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// list makes the report of what would go.
func (f *found) list(ctx context.Context, described *config.Cluster, untagged []int) error {
	// A store that does not answer keeps no machine: wipe says then that the states are still there.
	if err := f.states.Belongs(ctx, f.me, f.owner); err != nil && !errors.As(err, new(*state.Unreachable)) {
		return err
	}
	remove, stay, err := f.machines.Condemned(ctx, untagged)
	if err != nil {
		return err
	}
	f.report = newReport(described, remove, stay)
	return f.report.lists(ctx, f.machines)
}

// wipe removes the machines and takes the states away. A store of the states that does not answer keeps no machine.
func (f *found) wipe(ctx context.Context, on session) error {
	free, lockErr := on.LockStates(ctx)
	if errors.As(lockErr, new(*state.Locked)) || errors.As(lockErr, new(*state.NotOurs)) {
		return lockErr
	}
	if lockErr == nil {
		defer func() { _ = free() }() // the next run from here frees it, too
	}
	if err := f.machines.MayRemove(ctx); err != nil {
		return err
	}
	if err := f.removeAll(ctx, on); err != nil {
		return err
	}
	if err := f.left(ctx); err != nil {
		return err
	}
	var disks []error
	disks, f.report.Unseen = f.machines.NotRemoved(ctx, f.report.condemned, f.report.kept)
	f.report.Done = true
	if lockErr != nil {
		lockErr = fmt.Errorf("the machines are gone; the states are still there, since their store could not be locked, and the same call takes them away when it answers: %w", lockErr)
		return errors.Join(append(disks, lockErr)...)
	}
	err := on.Step("states", func(func(string)) (bool, error) {
		emptied, err := f.states.Empty(ctx, time.Now())
		f.report.States = emptied
		if err == nil && f.owner != "" {
			err = f.states.Disown(ctx)
		}
		return len(emptied) > 0, err
	})
	return errors.Join(append(disks, err)...)
}

// removeAll removes some machines at a time, and tells of all that could not be.
func (f *found) removeAll(ctx context.Context, on session) error {
	list := f.report.condemned
	slots := make(chan struct{}, atOnce)
	failures := make([]error, len(list))
	var wait sync.WaitGroup
	for i, vm := range list {
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			failures[i] = on.Step(fmt.Sprintf("VM %d %s", vm.ID, vm.Name), func(tell func(string)) (bool, error) {
				return f.machines.Remove(ctx, vm, f.report.Remove[i].Volumes, tell)
			})
		})
	}
	wait.Wait()
	return errors.Join(failures...)
}

// left looks whether anything is still there.
func (f *found) left(ctx context.Context) error {
	remaining, _, err := f.machines.Condemned(ctx, nil)
	if err != nil {
		return err
	}
	var still []error
	for _, vm := range remaining {
		still = append(still, fmt.Errorf("VM %d %s on %s is still there, or there again", vm.ID, vm.Name, vm.Host))
	}
	return errors.Join(still...)
}
