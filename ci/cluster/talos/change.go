package talos

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/encoder"

	"tazlab.net/castle/ci/cluster/talos/machineconfig"
)

// configs are the nodes' configurations, as they are given to them.
func (a *Access) configs(bundle *machineconfig.Bundle) (map[string][]byte, error) {
	made, _, err := machineconfig.Configs(a.cluster, bundle)
	if err != nil {
		return nil, err
	}
	configs := map[string][]byte{}
	for name, config := range made {
		// The comments that the library writes are for a person; without them the text is smaller and made faster.
		if configs[name], err = config.EncodeBytes(encoder.WithComments(encoder.CommentsDisabled)); err != nil {
			return nil, fmt.Errorf("write the machine configuration of %s: %w", name, err)
		}
	}
	return configs, nil
}

// Change is a node that has another configuration than the one that the description makes.
type Change struct {
	Node    string
	Restart bool // it takes a restart

	node   *node
	config []byte
}

// Changes looks, by a dry run, which nodes have another configuration than they should have, in the description's order. Those that have none
// yet, and those that do not answer, are left out: Up waits for them. What a cluster has for good is an error before any node is changed.
func (a *Access) Changes(ctx context.Context, bundle *machineconfig.Bundle) ([]Change, error) {
	configs, err := a.configs(bundle)
	if err != nil {
		return nil, err
	}
	found, lasting := make([]*Change, len(a.nodes)), make([]error, len(a.nodes))
	var wait sync.WaitGroup
	for i, n := range a.nodes {
		wait.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, 2*callTimeout)
			defer cancel()
			same, restart, err := n.compare(ctx, configs[n.Name])
			switch {
			case errors.As(err, new(*LastingError)):
				lasting[i] = err
			case err == nil && !same:
				found[i] = &Change{Node: n.Name, Restart: restart, node: n, config: configs[n.Name]}
			}
		})
	}
	wait.Wait()
	if err := errors.Join(lasting...); err != nil {
		return nil, err
	}
	var changes []Change
	for _, change := range slices.DeleteFunc(found, func(change *Change) bool { return change == nil }) {
		changes = append(changes, *change)
	}
	return changes, ctx.Err()
}

// Apply gives the node its configuration, and has it restart where that takes one.
func (c Change) Apply(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	mode := machine.ApplyConfigurationRequest_NO_REBOOT
	if c.Restart {
		mode = machine.ApplyConfigurationRequest_REBOOT
	}
	return c.node.give(ctx, c.config, mode)
}
