package run

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"tazlab.net/castle/ci/cluster/hypervisor"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/timeline"
)

// RemoveUnfinished removes the VMs that an earlier create had begun and no state knows, and notes each as a step.
func (c *Cluster) RemoveUnfinished(ctx context.Context, record *Record, access *Access) error {
	machines := c.Hypervisor(access)
	defer machines.Close()
	known := func() (func(string) bool, error) {
		states, err := c.States(access)
		if err != nil {
			return nil, err
		}
		addresses, err := states.Resources(ctx, layers.Platform)
		return func(node string) bool { return inState(addresses, node) }, err
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

// inState tells whether a node's VM is among the addresses of a state.
func inState(addresses []string, node string) bool {
	return slices.ContainsFunc(addresses, func(address string) bool { return strings.HasSuffix(address, fmt.Sprintf(".node[%q]", node)) })
}
