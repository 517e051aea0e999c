package run

import (
	"context"
	"fmt"

	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/state"
)

// OneNode is a node whose machine alone a run of the layer platform looks at and changes. The nil one stands for all nodes. What is done for
// the whole cluster after an apply, configuring all machines and waiting for them, is left to the run, which knows what it waits for.
type OneNode struct {
	Name string
	ID   int // its VM's; 0 where castle makes no machines
}

// only are what OpenTofu is told beside the command, to look at that node alone.
func (c *Cluster) only(node *OneNode) []string {
	if node == nil {
		return nil
	}
	return []string{fmt.Sprintf("-target=%s.node[%q]", state.MachineType(c.Description), node.Name)}
}

// ApplyNode applies the layer platform to one node's VM, and tells why where that failed.
func (c *Cluster) ApplyNode(ctx context.Context, record *Record, access *Access, node OneNode) error {
	return c.conduct(ctx, record, access, walk{
		layers: []layers.Layer{layers.Named(layers.Platform)}, order: layers.ToApply(), node: &node,
		command: append([]string{"apply", "-auto-approve"}, c.only(&node)...),
	})
}
