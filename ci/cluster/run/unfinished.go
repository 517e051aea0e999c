package run

import (
	"context"
	"errors"
	"fmt"

	"tazlab.net/castle/ci/cluster/hypervisor"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/talos"
	"tazlab.net/castle/ci/cluster/timeline"
)

// RemoveUnfinished removes the VMs that an earlier create had begun and no state knows, and notes each as a step.
func (c *Cluster) RemoveUnfinished(ctx context.Context, record *Record, access *Access) error {
	if !c.Description.MakesMachines() {
		return nil
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
	return machines.RemoveUnfinished(ctx, c.State, known, func(removal hypervisor.Removal) error {
		event := timeline.Event{Kind: timeline.KindStep, Cluster: c.Description.Name, Layer: layers.Platform, Name: removal.Step, Phase: timeline.PhaseStart}
		switch {
		case removal.Err != nil:
			event.Phase, event.Result, event.Cause = timeline.PhaseEnd, timeline.ResultFailed, removal.Err.Error()
		case removal.Ended:
			event.Phase, event.Result = timeline.PhaseEnd, timeline.ResultOK
		case removal.Waiting != "":
			event.Phase, event.Cause = timeline.PhaseWaiting, removal.Waiting
		}
		return record.Log.Append(event)
	})
}

// OwnMachines are the machines in the state of the layer platform. It fails where one that a run would change or remove is somebody else's.
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
	return known, machines.CheckOwned(ctx, c.State, known.IDs())
}

// noGhosts fails where a machine that castle did not make, described or in the state, answers with another PKI than the cluster's. One that
// does not answer, or waits for a configuration, is nobody else's.
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
