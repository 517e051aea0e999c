// Package create brings a cluster up, or on from where an earlier run ended: its secrets, then all layers, while the machines
// pull the layers' images ahead. It leaves alone what is there and as described.
package create

import (
	"context"
	"slices"

	"tazlab.net/castle/ci/cluster/layers/charts"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/platform"
	"tazlab.net/castle/ci/cluster/run"
)

// Options say how.
type Options struct {
	// PullAhead has the machines pull the layers' images as soon as they run.
	PullAhead bool
	// AllowReplace are nodes, typed by name, whose VMs may be removed or replaced where the description says so.
	AllowReplace []string
}

// Execute brings the cluster up, or on from where an earlier run ended: what is there and as described is left alone.
func Execute(ctx context.Context, cluster *run.Cluster, options Options) (*run.Result, error) {
	if err := cluster.Load(); err != nil {
		return nil, err
	}
	return cluster.Execute(ctx, "create", func(ctx context.Context, record *run.Record) error {
		if err := charts.CheckDownloads(cluster.Tools.Charts, cluster.State); err != nil {
			return &run.Failure{Cause: err.Error(), Resume: "nothing was changed"}
		}
		done, err := cluster.VerifyProxmox(ctx)
		if err != nil {
			return cluster.PlatformFailure(ctx, record, err)
		}
		defer done()
		access, err := cluster.SecretsLayer(ctx, record, true)
		if err != nil {
			return err
		}
		if err := begin(ctx, cluster, record, access, options.AllowReplace); err != nil {
			return cluster.PlatformFailure(ctx, record, err)
		}
		if options.PullAhead {
			defer pullAhead(ctx, cluster, record, access)()
		}
		return cluster.Terragrunt(ctx, record, access, "apply", "-auto-approve")
	})
}

// begin removes what an earlier create left unfinished, refuses to touch machines that are somebody else's and to take down or
// away unasked those that are there, and notes what this run is going to make.
func begin(ctx context.Context, cluster *run.Cluster, record *run.Record, access *run.Access, allowed []string) error {
	if err := cluster.RemoveUnfinished(ctx, record, access); err != nil {
		return err
	}
	known, err := cluster.OwnVMs(ctx, access)
	if err != nil {
		return err
	}
	machines := cluster.Hypervisor(access)
	defer machines.Close()
	there, err := machines.Finished(ctx, cluster.State)
	if err != nil {
		return err
	}
	// A machine that is there and in no state is going to be imported, and could be changed by that.
	if len(known)+len(there) > 0 {
		if err := foresee(ctx, cluster, record, access, known, allowed); err != nil {
			return err
		}
	}
	return machines.NoteUnfinished(ctx, cluster.State)
}

// foresee plans the layer platform, and refuses what would take machines down or away unasked. known are those in its state.
func foresee(ctx context.Context, cluster *run.Cluster, record *run.Record, access *run.Access, known state.VMs, allowed []string) error {
	machines := cluster.Hypervisor(access)
	defer machines.Close()
	begun, err := machines.Begun(cluster.State)
	if err != nil {
		return err
	}
	plan, err := platform.Plan(ctx, cluster, record, access, nil)
	if err != nil {
		return err
	}
	// The note alone could be an old one: another machine may have gone on since, with the same state.
	halfMade := slices.DeleteFunc(begun, func(node string) bool { return !known[node].Tainted })
	return platform.ConsequencesOf(plan).Refused(cluster.Description.Name, allowed, halfMade)
}
