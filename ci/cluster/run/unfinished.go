package run

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"tazlab.net/castle/ci/cluster/hypervisor"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/talos"
	"tazlab.net/castle/ci/cluster/timeline"
)

// RemoveUnfinished removes the VMs that an earlier create had begun and no state knows, and notes each as a step.
// confirmed says that the cluster's removal was confirmed by its name.
func (c *Cluster) RemoveUnfinished(ctx context.Context, record *Record, access *Access, confirmed bool) error {
	if !c.Description.MakesMachines() {
		return nil
	}
	tell := func(removal hypervisor.Removal) error {
		event := timeline.Event{Kind: timeline.KindStep, Cluster: c.Description.Name, Layer: layers.Platform,
			Name: removal.Step, Phase: timeline.PhaseStart}
		switch {
		case removal.Err != nil:
			event.Phase, event.Result, event.Cause = timeline.PhaseEnd, timeline.ResultFailed, removal.Err.Error()
		case removal.Ended:
			event.Phase, event.Result = timeline.PhaseEnd, timeline.ResultOK
		case removal.Waiting != "":
			event.Phase, event.Cause = timeline.PhaseWaiting, removal.Waiting
		}
		return record.Log.Append(event)
	}
	begun, err := c.StateFiles(access.Values).Unfinished(ctx)
	if useless, is := errors.AsType[*state.UselessNote](err); is {
		return c.setNoteAside(ctx, access, useless, tell)
	}
	if err != nil {
		return err
	}
	machines := c.Hypervisor(access)
	defer machines.Close()
	known := func() (map[string]int, error) {
		states, err := c.States(access)
		if err != nil {
			return nil, err
		}
		vms, err := states.VMs(ctx)
		return vms.IDs(), err
	}
	return machines.RemoveUnfinished(ctx, hypervisor.Unfinished{Begun: begun, Known: known, Confirmed: confirmed}, tell)
}

// setNoteAside keeps a note that says nothing, and tells so.
func (c *Cluster) setNoteAside(ctx context.Context, access *Access, useless *state.UselessNote,
	tell func(hypervisor.Removal) error) error {
	aside, err := c.StateFiles(access.Values).SetUnfinishedAside(ctx)
	if err != nil {
		return err
	}
	why := fmt.Sprintf("%v: nothing is removed by it, and it is now %s; where Proxmox says that a VM exists already, "+
		"look whose it is, and remove it with dagger call nuclear-wipe --cluster %s --include-untagged ID",
		useless, aside, c.Description.Name)
	return hypervisor.Told("note of unfinished VMs", why, tell)
}

// OthersDisksStay fails where OpenTofu would remove with the VMs of nodes volumes that are not theirs by their
// configurations.
func (c *Cluster) OthersDisksStay(ctx context.Context, access *Access, known state.VMs, nodes []string) error {
	var ids []int
	for _, node := range nodes {
		if vm := known[node]; vm.TakesUnreferenced {
			ids = append(ids, vm.ID)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	machines := c.Hypervisor(access)
	defer machines.Close()
	return machines.OthersDisks(ctx, ids)
}

// Configured are those of nodes whose machines answer with a configuration, of the cluster's PKI or of another one.
// They hold data.
func (c *Cluster) Configured(ctx context.Context, access *Access, known state.VMs,
	nodes []string) (found []string, err error) {
	if len(nodes) == 0 {
		return nil, nil
	}
	machines, err := c.WithPresent(known).Machines(access)
	if err != nil {
		return nil, err
	}
	defer machines.Close()
	for _, seen := range machines.Status(ctx) {
		if slices.Contains(nodes, seen.Name) && (seen.State == talos.IsConfigured || seen.State == talos.IsGhost) {
			found = append(found, seen.Name)
		}
	}
	return found, nil
}

// OwnMachines are the machines in the state of the layer platform. It fails where one that a run would change or
// remove is somebody else's.
func (c *Cluster) OwnMachines(ctx context.Context, access *Access) (state.VMs, error) {
	states, err := c.States(access)
	if err != nil {
		return nil, err
	}
	known, err := states.VMs(ctx)
	if err != nil {
		return nil, err
	}
	if !c.Description.MakesMachines() {
		return known, c.noGhosts(ctx, access, known)
	}
	machines := c.Hypervisor(access)
	defer machines.Close()
	begun, err := states.Begun(ctx)
	if err != nil {
		return nil, err
	}
	return known, machines.CheckOwned(ctx, begun, known.IDs())
}

// noGhosts fails where a machine that castle did not make, described or in the state, answers with another PKI than
// the cluster's. One that does not answer, or waits for a configuration, is nobody else's.
func (c *Cluster) noGhosts(ctx context.Context, access *Access, known state.VMs) error {
	machines, err := c.WithPresent(known).Machines(access)
	if err != nil {
		return err
	}
	defer machines.Close()
	var others []error
	for _, seen := range machines.Status(ctx) {
		if seen.State == talos.IsGhost {
			others = append(others, fmt.Errorf("%s: it is left alone, and nothing was changed", seen.Problem))
		}
	}
	return errors.Join(others...)
}
