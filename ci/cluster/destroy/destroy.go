// Package destroy removes a cluster, layer by layer in reverse order, and looks whether anything is left. What lives in a cluster that does not
// answer, or that holds what it should let go of, goes with its machines. It removes nothing that was not named. Machines that castle did not
// make are given back: they wipe what they hold of the cluster, and wait for another one's configuration.
package destroy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/hypervisor"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/run"
)

// Options say what is removed.
type Options struct {
	Confirm string // the cluster's name
}

// destruction is one run of the verb.
type destruction struct {
	session
	described *config.Cluster
	states    states
	mine      []hypervisor.VM       // that were there when it began, where castle makes machines
	kept      []hypervisor.Leftover // volumes with their ids that no configuration named then; they stay
	notes     []string              // what there is to be known of it at its end, a line each
}

// Execute removes the layers in reverse order and makes sure that nothing is left: every state empty, every VM gone.
func Execute(ctx context.Context, cluster *run.Cluster, options Options) (*run.Result, error) {
	if err := cluster.LoadForLayers(); err != nil {
		return nil, err
	}
	if name := cluster.Description.Name; options.Confirm != name {
		return nil, fmt.Errorf("destroy removes cluster %s and all that is stored in it: confirm with --confirm %s", name, name)
	}
	if err := cluster.MayBeRemoved("destroy"); err != nil {
		return nil, err
	}
	cluster.Flags = []string{"--confirm", options.Confirm}
	var notes []string
	result, err := cluster.Execute(ctx, "destroy", func(ctx context.Context, record *run.Record) error {
		done, err := cluster.VerifyProxmox(ctx)
		if err != nil {
			return cluster.PlatformFailure(ctx, record, err)
		}
		defer done()
		access, err := cluster.SecretsLayer(ctx, record, false, nil)
		if err != nil {
			return err
		}
		states, err := cluster.States(access)
		if err != nil {
			return err
		}
		d := &destruction{session: running{cluster, record, access}, described: cluster.Description, states: states}
		err = d.execute(ctx)
		notes = d.notes
		return err
	})
	if result != nil {
		result.Notes = notes
	}
	return result, err
}

func (d *destruction) execute(ctx context.Context) error {
	// A token that cannot remove the machines is known before what runs on them is gone.
	if err := d.mayRemove(ctx); err != nil {
		return d.Failure(ctx, err)
	}
	if err := d.RemoveUnfinished(ctx); err != nil {
		return d.Failure(ctx, err)
	}
	if !d.described.MakesMachines() {
		return d.giveBack(ctx)
	}
	known, err := d.OwnMachines(ctx)
	if err == nil {
		err = d.OthersDisksStay(ctx, known)
	}
	if err != nil {
		return d.Failure(ctx, err)
	}
	left, err := d.inCluster(ctx)
	if err != nil {
		return err
	}
	// Minutes have passed, and what is removed is known by its id.
	if _, err := d.OwnMachines(ctx); err != nil {
		return d.Failure(ctx, err)
	}
	beneath := append([]layers.Layer{layers.Named(layers.Secrets), layers.Named(layers.Platform)}, left...)
	if err := d.machines(ctx, beneath); err != nil {
		return err
	}
	if err := d.proof(ctx); err != nil {
		return err
	}
	return d.states.ForgetUnfinished(ctx)
}

// machines destroys the layers beneath the cluster, and again where only a mood of Proxmox's was in the way.
func (d *destruction) machines(ctx context.Context, beneath []layers.Layer) error {
	return run.Patiently(ctx, func(bool) error { return d.DestroyLayers(ctx, beneath, 0) })
}

func (d *destruction) mayRemove(ctx context.Context) error {
	if !d.described.MakesMachines() {
		return nil
	}
	machines := d.Proxmox()
	defer machines.Close()
	if err := machines.MayRemove(ctx); err != nil {
		return err
	}
	begun, err := d.states.Begun(ctx)
	if err != nil {
		return err
	}
	if d.mine, err = machines.Mine(ctx, begun); err != nil {
		return err
	}
	// What cannot be looked up now cannot be later: disksLeft says so.
	d.kept, _ = machines.Unreferenced(ctx, d.mine)
	for _, l := range d.kept {
		d.notes = append(d.notes, l.Stays())
	}
	return nil
}

// proof looks whether destroy has done what it promises.
func (d *destruction) proof(ctx context.Context) error {
	left, err := d.statesLeft(ctx)
	if err != nil {
		return err
	}
	machines := d.Proxmox()
	defer machines.Close()
	vms, err := machines.VMs(ctx)
	if err != nil {
		return err
	}
	for _, vm := range vms {
		if vm.Ours {
			left = append(left, fmt.Errorf("VM %d %s on %s is still there, and no state knows it: nuclear-wipe lists it and removes it", vm.ID, vm.Name, vm.Host))
		}
	}
	left = append(left, d.disksLeft(ctx, machines)...)
	d.notes = append(d.notes, fmt.Sprintf("looked up: the states of all %d layers are empty, and Proxmox has no VM from %d to %d with the tag %s",
		len(layers.All), d.described.VMIDs.First, d.described.VMIDs.Last, d.described.Tag()))
	return errors.Join(left...)
}

// disksLeft says which disks of the machines that were there are not gone with them. What a storage has of a described node whose machine was
// not there is somebody's to look at.
func (d *destruction) disksLeft(ctx context.Context, machines proxmox) []error {
	left, unseen := machines.NotRemoved(ctx, d.mine, d.kept)
	if unseen != "" {
		d.notes = append(d.notes, unseen)
		return nil
	}
	others := slices.DeleteFunc(slices.Clone(d.described.Nodes), func(node config.Node) bool {
		return slices.ContainsFunc(d.mine, func(vm hypervisor.VM) bool { return vm.ID == node.VMID })
	})
	found, err := machines.LeftoversOf(ctx, others)
	if err != nil { // their host may be gone as well
		d.notes = append(d.notes, fmt.Sprintf("not looked up: what storages have of machines that were gone before: %v", err))
	}
	for _, l := range found {
		d.notes = append(d.notes, fmt.Sprintf("%s on %s has the id of %s, whose VM was gone before: %s", l.Volume, l.VM.Host, l.VM.Name, l.FixOfAnyones()))
	}
	return left
}

// statesLeft says of each layer whose state holds something what that is.
func (d *destruction) statesLeft(ctx context.Context) (left []error, err error) {
	for _, layer := range layers.All {
		resources, err := d.states.Resources(ctx, layer.Name)
		if err != nil {
			return nil, err
		}
		if len(resources) > 0 {
			left = append(left, fmt.Errorf("the state of layer %s still holds %s", layer.Name, strings.Join(resources, ", ")))
		}
	}
	return left, nil
}
