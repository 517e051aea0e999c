// Package status looks at a cluster as it is now, at all of it at once: what the states hold, machines, gates. It waits for
// nothing and changes nothing.
package status

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/gates"
	"tazlab.net/castle/ci/cluster/hypervisor"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/talos"
)

// lookTime is how long status looks at each gate.
const lookTime = 3 * time.Second

// Status is a cluster as it is now.
type Status struct {
	Cluster string        `json:"cluster"`
	Layers  []LayerStatus `json:"layers"`
	Nodes   []NodeStatus  `json:"nodes"`
	Gates   []GateStatus  `json:"gates"`
}

// LayerStatus is what a layer's state holds.
type LayerStatus struct {
	Layer     string `json:"layer"`
	Resources int    `json:"resources"`
	Problem   string `json:"problem,omitempty"` // why the state could not be read
}

// NodeStatus is a node as its hypervisor and Talos see it.
type NodeStatus struct {
	Name    string `json:"name"`
	Role    string `json:"role"`
	Address string `json:"address"`
	VM      string `json:"vm"`    // "running", "stopped", "absent", "unknown"; "-" of a machine that castle does not make
	Talos   string `json:"talos"` // "configured v1.13.9", "maintenance", "silent", …
	Problem string `json:"problem,omitempty"`
}

// GateStatus is a gate's condition.
type GateStatus struct {
	Gate      string `json:"gate"`
	Condition string `json:"condition"`
	Holds     bool   `json:"holds"`
	Seen      string `json:"seen,omitempty"` // what was seen instead
}

// states are those of the layers.
type states interface {
	Resources(ctx context.Context, layer string) ([]string, error)
}

// machines answer by Talos's API.
type machines interface {
	Status(ctx context.Context) []talos.NodeStatus
}

// Execute looks at everything at once and changes nothing.
func Execute(ctx context.Context, cluster *run.Cluster) (*Status, error) {
	access, states, err := cluster.OpenStates(ctx)
	if err != nil {
		return nil, err
	}
	machines, err := cluster.Machines(access)
	if err != nil {
		return nil, err
	}
	defer machines.Close()
	client, err := access.API()
	if err != nil {
		return nil, err
	}
	status := &Status{Cluster: cluster.Description.Name}
	vms := func(context.Context) ([]hypervisor.VM, error) { return nil, nil }
	if cluster.Description.MakesMachines() {
		proxmox := cluster.Hypervisor(access)
		defer proxmox.Close()
		vms = proxmox.VMs
	}
	var wait sync.WaitGroup
	wait.Go(func() { status.Layers = layerStatus(ctx, cluster.Description, states) })
	wait.Go(func() { status.Nodes = nodeStatus(ctx, cluster.Description, vms, machines) })
	wait.Go(func() {
		status.Gates = gateStatus(ctx, gates.Env{Kube: client, Cluster: cluster.Description, Talos: run.Quorum{Machines: machines}, LookOnly: true})
	})
	wait.Wait()
	return status, ctx.Err()
}

func layerStatus(ctx context.Context, described *config.Cluster, states states) []LayerStatus {
	var list []LayerStatus
	without := layers.Without(described)
	for _, layer := range layers.All {
		status := LayerStatus{Layer: layer.Name}
		resources, err := states.Resources(ctx, layer.Name)
		unwanted := slices.ContainsFunc(without, func(one layers.Layer) bool { return one.Name == layer.Name })
		switch {
		case err != nil:
			status.Problem = err.Error()
		case unwanted && len(resources) == 0:
			continue
		case unwanted:
			status.Problem = "none in cluster.yaml; create --remove-layer " + layer.Name + " removes it"
		}
		status.Resources = len(resources)
		list = append(list, status)
	}
	return list
}

func nodeStatus(ctx context.Context, described *config.Cluster, vms func(context.Context) ([]hypervisor.VM, error), machines machines) []NodeStatus {
	var seen []talos.NodeStatus
	var wait sync.WaitGroup
	wait.Go(func() { seen = machines.Status(ctx) })
	there, err := vms(ctx)
	wait.Wait()
	absent := "absent"
	if !described.MakesMachines() {
		absent = "-"
	}
	list := make([]NodeStatus, len(described.Nodes))
	for i, node := range described.Nodes {
		list[i] = NodeStatus{Name: node.Name, Role: node.Role, Address: node.Address.String(), VM: absent,
			Talos: strings.TrimSpace(seen[i].State + " " + seen[i].Version), Problem: seen[i].Problem}
		if err != nil {
			list[i].VM, list[i].Problem = "unknown", err.Error()
		}
		for _, vm := range there {
			if vm.ID == node.VMID {
				list[i].VM = vm.Status
				if !vm.Ours {
					list[i].Problem = fmt.Sprintf("VM %d is not this cluster's: it has no tag %s", vm.ID, described.Tag())
				}
			}
		}
	}
	return list
}

// gateStatus looks at the layers' gates. Those inside a layer are passed when the layer's own is.
func gateStatus(ctx context.Context, env gates.Env) []GateStatus {
	gated := layers.Of(env.Cluster)[1:]
	found := make([][]GateStatus, len(gated))
	var wait sync.WaitGroup
	for i, layer := range gated {
		wait.Go(func() { found[i] = lookAtGate(ctx, layer.Name, env) })
	}
	wait.Wait()
	var list []GateStatus
	for _, gate := range found {
		list = append(list, gate...)
	}
	return list
}

func lookAtGate(ctx context.Context, gate string, env gates.Env) []GateStatus {
	var list []GateStatus
	seen := map[string]string{}
	err := gates.Run(ctx, gate, env, gates.Options{Timeout: lookTime, Events: func(event gates.Event) {
		switch {
		case event.Condition == "":
		case event.Phase == gates.PhaseWaiting:
			seen[event.Condition] = event.Seen
		case event.Phase == gates.PhaseEnd:
			status := GateStatus{Gate: gate, Condition: event.Condition, Holds: event.Err == nil}
			if !status.Holds {
				if status.Seen = event.Seen; status.Seen == "" {
					status.Seen = seen[event.Condition]
				}
			}
			list = append(list, status)
		}
	}})
	if len(list) == 0 && err != nil {
		list = append(list, GateStatus{Gate: gate, Condition: "all", Seen: err.Error()})
	}
	return list
}

// Text is for a person.
func (s *Status) Text() string {
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "layer\tresources\t\n")
	for _, layer := range s.Layers {
		fmt.Fprintf(table, "%s\t%d\t%s\n", layer.Layer, layer.Resources, layer.Problem)
	}
	fmt.Fprintf(table, "\nnode\trole\taddress\tVM\tTalos\t\n")
	for _, node := range s.Nodes {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", node.Name, node.Role, node.Address, node.VM, node.Talos, node.Problem)
	}
	fmt.Fprintf(table, "\ngate\tcondition\t\t\n")
	for _, gate := range s.Gates {
		holds := "holds"
		if !gate.Holds {
			holds = "does not hold"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", gate.Gate, gate.Condition, holds, gate.Seen)
	}
	_ = table.Flush() // a strings.Builder takes everything
	return out.String()
}

// Markdown is for a job's summary.
func (s *Status) Markdown() string { return rendering.Block("text", s.Text()) }
