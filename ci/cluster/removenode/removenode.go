// Package removenode makes one node leave a cluster: its pods go elsewhere, its etcd member is taken out, its machine wipes itself, its
// VM is removed with its disks and its state, and Kubernetes forgets it. A machine that castle did not make stays, in maintenance mode. All
// that could speak against it is looked at before anything is changed, and each step goes by what is there, so that a second call goes on
// where the first one was interrupted.
package removenode

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/run"
)

// Options say which node leaves.
type Options struct {
	Node    string
	Confirm string // its name once more
	// DrainTimeout is how long its pods may take to go.
	DrainTimeout time.Duration
}

// Execute makes the node leave. cluster.yaml does not list it any more, or the next create would make it again.
func Execute(ctx context.Context, cluster *run.Cluster, options Options) (*run.Result, error) {
	if err := cluster.LoadForLayers(); err != nil {
		return nil, err
	}
	name := cluster.Description.Name
	if options.Confirm != options.Node || options.Node == "" {
		return nil, fmt.Errorf("remove-node %s: confirm with --confirm %s", what(cluster.Description, options.Node), options.Node)
	}
	if slices.ContainsFunc(cluster.Description.Nodes, func(node config.Node) bool { return node.Name == options.Node }) {
		return nil, fmt.Errorf("%s of cluster %s lists %s, and the next create would make it again: take it out there first", config.File, name, options.Node)
	}
	cluster.Flags = []string{"--node", options.Node, "--confirm", options.Node}
	var notes []string
	result, err := cluster.Execute(ctx, "remove-node", func(ctx context.Context, record *run.Record) error {
		verified, err := cluster.VerifyProxmox(ctx)
		if err != nil {
			return cluster.PlatformFailure(ctx, record, err)
		}
		defer verified()
		access, err := cluster.SecretsAlone(ctx, record)
		if err != nil {
			return err
		}
		l, err := look(ctx, running{cluster, record, access}, cluster.Description, options)
		if err != nil {
			return err
		}
		defer l.close()
		if err := l.check(ctx); err != nil {
			return err
		}
		err = l.leave(ctx)
		notes = l.notes
		return err
	})
	if result != nil {
		result.Notes = notes
	}
	return result, err
}

// what says what the verb does to a node's machine.
func what(described *config.Cluster, node string) string {
	if described.MakesMachines() {
		return fmt.Sprintf("removes the VM of %s with its disks", node)
	}
	return fmt.Sprintf("has the machine of %s wipe all that it holds of the cluster", node)
}

// leave takes all steps. What fails can be gone on with.
func (l *leaving) leave(ctx context.Context) error {
	for _, step := range []func(context.Context) error{l.drain, l.leaveEtcd, l.reset, l.removeVM, l.forget} {
		err := step(ctx)
		if err == nil {
			continue
		}
		if !errors.As(err, new(*run.Failure)) {
			err = l.Failure(ctx, err)
		}
		return err
	}
	return nil
}
