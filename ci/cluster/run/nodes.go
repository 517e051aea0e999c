package run

import (
	"slices"
	"strings"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/layers/state"
)

// WithPresent is the cluster with its described nodes, and those in the state that are not described any more.
func (c *Cluster) WithPresent(known state.VMs) *Cluster {
	described := *c.Description
	described.Nodes = slices.Clone(described.Nodes)
	for _, node := range c.Present(known).Description.Nodes {
		if _, is := c.Description.Node(node.Name); !is {
			described.Nodes = append(described.Nodes, node)
		}
	}
	all := *c
	all.Description = &described
	return &all
}

// Present is the cluster with the nodes that its machines are, by their state, whatever cluster.yaml says of them now. Of a node it
// knows what it is called, what it is and where.
func (c *Cluster) Present(known state.VMs) *Cluster {
	described := *c.Description
	described.Nodes = nil
	for name, vm := range known {
		if vm.Address.IsValid() {
			described.Nodes = append(described.Nodes, config.Node{Name: name, Role: vm.Role, Address: vm.Address, VMID: vm.ID, Host: vm.Host})
		}
	}
	slices.SortFunc(described.Nodes, func(a, b config.Node) int { return strings.Compare(a.Name, b.Name) })
	present := *c
	present.Description = &described
	return &present
}
