package run

import (
	"context"
	"encoding/json"
	"fmt"

	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/layers/terragrunt"
)

// OneNode is a node whose machine alone a run of the layer platform looks at and changes. The nil one stands for all nodes.
type OneNode struct {
	Name string
	ID   int // its VM's; 0 where castle makes no machines
}

// variableOneNode tells the layer's hooks which VM that is, as JSON: {"blue-worker-2": 425}. What they would do for the whole
// cluster then, configuring all machines and waiting for them, is left to the run, which knows what it waits for.
const variableOneNode = "CASTLE_ONE_NODE"

// Only are what OpenTofu is told beside the command, to look at that node alone.
func (c *Cluster) Only(node *OneNode) []string {
	if node == nil {
		return nil
	}
	return []string{fmt.Sprintf("-target=%s.node[%q]", state.MachineType(c.Description), node.Name)}
}

// PlatformRunner is Terragrunt on the layer platform alone, for one node or all of them.
func (c *Cluster) PlatformRunner(access *Access, events string, log Log, only *OneNode) (terragrunt.Runner, error) {
	runner, err := c.Runner(access, nil, events, log)
	if err != nil {
		return runner, err
	}
	runner.Only = []string{layers.Named(layers.Platform).Folder}
	if only != nil {
		value, err := json.Marshal(map[string]int{only.Name: only.ID})
		if err != nil {
			return runner, err
		}
		runner.Env = append(runner.Env, variableOneNode+"="+string(value))
	}
	return runner, nil
}

// ApplyNode applies the layer platform to one node's VM, and tells why where that failed.
func (c *Cluster) ApplyNode(ctx context.Context, record *Record, access *Access, node OneNode) error {
	return c.terragrunt(ctx, record, access, func(access *Access, _ Way, events string, log Log) (terragrunt.Runner, error) {
		return c.PlatformRunner(access, events, log, &node)
	}, append([]string{"apply", "-auto-approve"}, c.Only(&node)...)...)
}
