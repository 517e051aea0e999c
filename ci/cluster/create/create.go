// Package create brings a cluster up, or on from where an earlier run ended: its secrets, while what the cluster stands on is looked at,
// then all layers, while the machines pull the layers' images ahead, and its administrator's credentials into Infisical. It leaves alone
// what is there and as described.
package create

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"tazlab.net/castle/ci/cluster/checks"
	"tazlab.net/castle/ci/cluster/hypervisor"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/charts"
	"tazlab.net/castle/ci/cluster/layers/providers"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/platform"
	"tazlab.net/castle/ci/cluster/restart"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/secrets"
	"tazlab.net/castle/ci/cluster/timeline"
)

// Options say how.
type Options struct {
	// PullAhead has the machines pull the layers' images as soon as they run.
	PullAhead bool
	// AllowReplace are nodes, typed by name, whose VMs may be removed or replaced where the description says so.
	AllowReplace []string
	// RemoveLayers are layers, typed by name, that the description has no more and that may be removed.
	RemoveLayers []string
}

// Execute brings the cluster up, or on from where an earlier run ended: what is there and as described is left alone.
func Execute(ctx context.Context, cluster *run.Cluster, options Options) (*run.Result, error) {
	if err := cluster.LoadForLayers(); err != nil {
		return nil, err
	}
	if len(options.AllowReplace) > 0 && !cluster.Description.MakesMachines() {
		return nil, fmt.Errorf("--allow-replace is for machines that castle makes, and those of platform %s are there already: have %s leave with remove-node, also where its machine does not answer any more",
			cluster.Description.Platform, strings.Join(options.AllowReplace, ", "))
	}
	return cluster.Execute(ctx, "create", func(ctx context.Context, record *run.Record) error {
		if err := charts.CheckDownloads(cluster.Tools.Charts, cluster.State); err != nil {
			return &run.Failure{Cause: err.Error(), Resume: "nothing was changed"}
		}
		if err := providers.CheckFetched(cluster.Tools.Providers, cluster.Layers, cluster.State); err != nil {
			return &run.Failure{Cause: err.Error(), Resume: "nothing was changed"}
		}
		access, err := cluster.SecretsLayer(ctx, record, true, func(ctx context.Context, values func() *secrets.Values) error {
			return checks.Blocking(ctx, cluster, values, func(row checks.Row) error {
				return record.Log.Append(timeline.Event{
					Kind: timeline.KindStep, Cluster: cluster.Description.Name, Layer: layers.Secrets, Name: "check " + row.Group + " " + row.Name,
					Phase: timeline.PhaseEnd, Result: timeline.ResultUnproven, Cause: row.Seen,
				})
			})
		})
		if err != nil {
			return err
		}
		done, err := cluster.VerifyProxmox(ctx)
		if err != nil {
			return cluster.PlatformFailure(ctx, record, err)
		}
		defer done()
		unwanted, err := mayRemove(ctx, cluster, access, options.RemoveLayers)
		fresh := false
		if err == nil {
			fresh, err = begin(ctx, cluster, record, access, options.AllowReplace)
		}
		if err == nil {
			err = removeLayers(ctx, cluster, record, access, unwanted)
		}
		if err != nil {
			if errors.As(err, new(*run.Failure)) {
				return err
			}
			return cluster.PlatformFailure(ctx, record, err)
		}
		if options.PullAhead {
			defer pullAhead(ctx, cluster, record, access)()
		}
		kept := func() error { return nil }
		if cluster.Description.Secrets.Infisical.Has() {
			kept = keepCredentials(ctx, cluster, record, access)
		}
		err = run.Patiently(ctx, func(again bool) error {
			if again { // what that has left half-made is known, and goes first
				if fresh, err = begin(ctx, cluster, record, access, options.AllowReplace); err != nil {
					return cluster.PlatformFailure(ctx, record, err)
				}
			}
			return apply(ctx, cluster, record, access, fresh)
		})
		return errors.Join(err, cluster.NotKept(record, kept()))
	})
}

// apply applies all layers. Machines that are all to be made come up beside that.
func apply(ctx context.Context, cluster *run.Cluster, record *run.Record, access *run.Access, fresh bool) error {
	stop := func() error { return nil }
	if fresh {
		var err error
		if stop, err = cluster.BringUpAhead(ctx, record, access); err != nil {
			return err
		}
	}
	err := cluster.Terragrunt(ctx, record, access, "apply", "-auto-approve")
	return errors.Join(err, stop())
}

// begin removes what an earlier create left unfinished, refuses to touch machines that are somebody else's and to take away unasked
// those that are there, restarts one after the other those that have to be, and notes what this run is going to make. Where none is there it
// refuses to make any whose credentials could not be kept. fresh tells that all machines are to be made.
func begin(ctx context.Context, cluster *run.Cluster, record *run.Record, access *run.Access, allowed []string) (fresh bool, err error) {
	if err := cluster.RemoveUnfinished(ctx, record, access, false); err != nil {
		return false, err
	}
	if !cluster.Description.MakesMachines() {
		known, err := cluster.OwnMachines(ctx, access)
		if err != nil {
			return false, err
		}
		return false, reconcile(ctx, cluster, record, access, known, nil, planned(ctx, cluster, record, access), nil)
	}
	machines := cluster.Hypervisor(access)
	defer machines.Close()
	there, err := machines.Finished(ctx)
	if err != nil {
		return false, err
	}
	// A plan changes nothing, and of a cluster that is there one is needed: it is made beside the look whose the machines are.
	plan := planned(ctx, cluster, record, access)
	if len(there) > 0 {
		planning, stop := context.WithCancel(ctx)
		plan = beside(planned(planning, cluster, record, access))
		defer func() { // nothing of it goes on where this ends early
			stop()
			_, _ = plan()
		}()
	}
	known, err := cluster.OwnMachines(ctx, access)
	if err != nil {
		return false, err
	}
	if err := reconcile(ctx, cluster, record, access, known, there, plan, allowed); err != nil {
		return false, err
	}
	return len(known)+len(there) == 0, noteUnfinished(ctx, cluster.StateFiles(access.Values), machines)
}

// noteUnfinished notes with the states what this run is going to make.
func noteUnfinished(ctx context.Context, states state.Store, machines *hypervisor.Hypervisor) error {
	begun, err := states.Unfinished(ctx)
	if err != nil {
		return err
	}
	ids, err := machines.Unfinished(ctx, begun)
	if err != nil {
		return err
	}
	return states.NoteUnfinished(ctx, ids)
}

// planned plans the layer platform.
func planned(ctx context.Context, cluster *run.Cluster, record *run.Record, access *run.Access) func() (platform.Consequences, error) {
	return func() (platform.Consequences, error) { return platform.Foresee(ctx, cluster, record, access) }
}

// beside does something from now on; what it returns waits for it.
func beside[T any](do func() (T, error)) (wait func() (T, error)) {
	wait = sync.OnceValues(do)
	go func() { _, _ = wait() }()
	return wait
}

// reconcile refuses what would take machines away that are there, known to the state or not, or keep Flux from applying what it applies, and restarts those that have to be. Where there
// are none it keeps what can be kept of their credentials.
func reconcile(ctx context.Context, cluster *run.Cluster, record *run.Record, access *run.Access, known state.VMs, there map[string]string,
	plan func() (platform.Consequences, error), allowed []string) error {
	// A machine that is there and in no state is going to be imported, and could be changed by that.
	if len(known)+len(there) == 0 {
		if !cluster.Description.Secrets.Infisical.Has() {
			return nil
		}
		return cluster.NotKept(record, keeperOf(cluster, record, access).ahead(ctx))
	}
	if err := cluster.FitsLockdown(ctx, access); err != nil {
		return &run.Failure{Cause: err.Error(), Resume: "nothing was changed"}
	}
	found, err := foresee(ctx, cluster, access, known, plan, allowed)
	if err != nil {
		return err
	}
	present := withLost(cluster, known, there)
	if err := restart.Nodes(ctx, cluster, record, access, present, found); err != nil {
		return err
	}
	return restart.Configurations(ctx, cluster, record, access, present)
}

// withLost are the VMs in the state, and those that no state knows and that are about to be imported, as they are described.
func withLost(cluster *run.Cluster, known state.VMs, there map[string]string) state.VMs {
	all := maps.Clone(known)
	if all == nil {
		all = state.VMs{}
	}
	for _, node := range cluster.Description.Nodes {
		_, inState := known[node.Name]
		if _, is := there[node.Name]; is && !inState {
			all[node.Name] = state.VM{ID: node.VMID, Host: node.Host, Role: node.Role, Address: node.Address}
		}
	}
	return all
}

// foresee waits for the plan of the layer platform, refuses what would take machines away unasked, and returns what it would do to the
// nodes. known are those in its state.
func foresee(ctx context.Context, cluster *run.Cluster, access *run.Access, known state.VMs,
	plan func() (platform.Consequences, error), allowed []string) (found platform.Consequences, err error) {
	var begun []string
	if cluster.Description.MakesMachines() {
		if begun, err = halfMade(ctx, cluster, access, known); err != nil {
			return found, err
		}
	}
	if found, err = plan(); err != nil {
		return found, err
	}
	// One that no state knows is finished by the apply, and runs nothing yet that a restart would disturb.
	found.Restarted = slices.DeleteFunc(found.Restarted, func(node string) bool {
		_, inState := known[node]
		return !inState && slices.Contains(begun, node)
	})
	// The note alone could be an old one: another machine may have gone on since, with the same state.
	failed := slices.DeleteFunc(begun, func(node string) bool { return !known[node].Tainted })
	if err := found.Refused(cluster.Description, allowed, failed); err != nil {
		return found, err
	}
	return found, cluster.OthersDisksStay(ctx, access, known, slices.Concat(found.Removed, found.Replaced))
}

// halfMade are the nodes whose VMs an earlier create had begun, but for those whose machines answer with a configuration:
// a note does not know what was done since from another machine.
func halfMade(ctx context.Context, cluster *run.Cluster, access *run.Access, known state.VMs) ([]string, error) {
	ids, err := cluster.StateFiles(access.Values).Begun(ctx)
	if err != nil {
		return nil, err
	}
	machines := cluster.Hypervisor(access)
	defer machines.Close()
	begun := machines.Begun(ids)
	configured, err := cluster.Configured(ctx, access, known, begun)
	return slices.DeleteFunc(begun, func(node string) bool { return slices.Contains(configured, node) }), err
}
