package restart

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/talos"
)

// Configurations gives the nodes that are there the machine configuration that the description makes by now, one after the other, and restarts
// those that it takes a restart of. Before each the cluster has to be well. known are the VMs in the layer's state. Where the API does not answer,
// nothing is done: the layer platform configures machines that no cluster stands on yet, and those of one whose API the change may mend.
func Configurations(ctx context.Context, cluster *run.Cluster, record *run.Record, access *run.Access, known state.VMs) error {
	described, err := cluster.Machines(access)
	if err != nil {
		return err
	}
	defer described.Close()
	changes, err := described.Changes(ctx, access.Bundle)
	if err != nil || len(changes) == 0 {
		return err
	}
	r, err := open(cluster, record, access, known)
	if err != nil {
		return err
	}
	nodes, err := r.nodesOf(ctx, described)
	if nodes == nil {
		return err
	}
	present := cluster.Present(known)
	if r.machines, err = present.Machines(access); err != nil {
		return err
	}
	defer r.machines.Close()
	for _, change := range inTurn(changes, nodes.Items) {
		if err := r.configure(ctx, present, change); err != nil {
			return err
		}
	}
	return nil
}

// nodesOf are the Nodes of Kubernetes, nil where the API does not answer. That of a cluster which stands, as etcd tells, may only be away for a moment.
func (r *rolling) nodesOf(ctx context.Context, machines *talos.Access) (*corev1.NodeList, error) {
	nodes, err := r.nodes(ctx)
	if err == nil {
		return nodes, nil
	}
	if quorum, err := machines.EtcdQuorum(ctx); err != nil || len(quorum.Members) == 0 {
		return nil, ctx.Err()
	}
	err = r.kube.AskFor(ctx, kube.AwayAtMost, func(ctx context.Context) (err error) {
		nodes, err = r.nodes(ctx)
		return err
	})
	if err != nil {
		return nil, ctx.Err()
	}
	return nodes, nil
}

// turn is a change, and whether the node that it is for has to be well before.
type turn struct {
	talos.Change
	sick bool
}

// inTurn puts first a node that is not Ready: its change may be what mends it, and the cluster cannot be well before. Nodes that Kubernetes does
// not know are left to the layer.
func inTurn(changes []talos.Change, nodes []corev1.Node) []turn {
	var turns []turn
	for _, change := range changes {
		at := slices.IndexFunc(nodes, func(node corev1.Node) bool { return node.Name == change.Node })
		if at >= 0 {
			turns = append(turns, turn{change, !kube.NodeReady(&nodes[at])})
		}
	}
	slices.SortStableFunc(turns, func(a, b turn) int {
		switch {
		case a.sick == b.sick:
			return 0
		case a.sick:
			return -1
		default:
			return 1
		}
	})
	for i := range turns {
		turns[i].sick = turns[i].sick && i == 0 // of two, the second waits until the first is well
	}
	return turns
}

// configure gives one node its configuration.
func (r *rolling) configure(ctx context.Context, present *run.Cluster, change turn) error {
	apply := func(ctx context.Context) error {
		return r.record.Step(r.cluster.Description.Name, "configure "+change.Node, func(func(string)) (bool, error) { return true, change.Apply(ctx) })
	}
	if change.Restart && !change.sick {
		return r.restart(ctx, present, change.Node, apply)
	}
	if !change.sick {
		if err := r.wellBefore(ctx, present, change.Node); err != nil {
			return err
		}
	}
	return apply(ctx)
}
