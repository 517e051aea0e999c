package create

import (
	"context"
	"maps"
	"slices"

	"tazlab.net/castle/ci/cluster/hypervisor"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/platform"
	"tazlab.net/castle/ci/cluster/restart"
	"tazlab.net/castle/ci/cluster/run"
)

// prepareMachines removes what an earlier create left unfinished, refuses to touch machines that are somebody else's and to take away unasked
// those that are there, restarts one after the other those that have to be, and notes what this run is going to make. Where none is there it
// refuses to make any whose credentials could not be kept.
func (c *creation) prepareMachines(ctx context.Context) error {
	c.fresh = false
	if err := c.cluster.RemoveUnfinished(ctx, c.record, c.access, false); err != nil {
		return err
	}
	if !c.cluster.Description.MakesMachines() {
		known, err := c.cluster.OwnMachines(ctx, c.access)
		if err != nil {
			return err
		}
		return c.reconcile(ctx, known, nil, c.planned(ctx))
	}
	machines := c.cluster.Hypervisor(c.access)
	defer machines.Close()
	there, err := machines.Finished(ctx)
	if err != nil {
		return err
	}
	// A plan changes nothing, and of a cluster that is there one is needed: it is made beside the look whose the machines are.
	plan := c.planned(ctx)
	if len(there) > 0 {
		planning, stop := context.WithCancel(ctx)
		plan = run.Beside(c.planned(planning))
		defer func() { // nothing of it goes on where this ends early
			stop()
			_, _ = plan()
		}()
	}
	known, err := c.cluster.OwnMachines(ctx, c.access)
	if err != nil {
		return err
	}
	if err := c.reconcile(ctx, known, there, plan); err != nil {
		return err
	}
	c.fresh = len(known)+len(there) == 0
	return noteUnfinished(ctx, c.cluster.StateFiles(c.access.Values), machines)
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
func (c *creation) planned(ctx context.Context) func() (platform.Consequences, error) {
	return func() (platform.Consequences, error) { return platform.Foresee(ctx, c.cluster, c.record, c.access) }
}

// reconcile refuses what would take machines away that are there, known to the state or not, or keep Flux from applying what
// it applies, and restarts those that have to be. Where there are none it keeps what can be kept of their credentials.
func (c *creation) reconcile(
	ctx context.Context, known state.VMs, there map[string]string, plan func() (platform.Consequences, error),
) error {
	// A machine that is there and in no state is going to be imported, and could be changed by that.
	if len(known)+len(there) == 0 {
		if !c.cluster.Description.Secrets.Infisical.Has() {
			return nil
		}
		return c.cluster.NotKept(c.record, c.keeper().ahead(ctx))
	}
	if err := c.cluster.FitsLockdown(ctx, c.access); err != nil {
		return &run.Failure{Cause: err.Error(), Resume: "nothing was changed"}
	}
	found, err := c.foresee(ctx, known, plan)
	if err != nil {
		return err
	}
	present := withLost(c.cluster, known, there)
	if err := restart.Nodes(ctx, c.cluster, c.record, c.access, present, found); err != nil {
		return err
	}
	return restart.Configurations(ctx, c.cluster, c.record, c.access, present)
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
func (c *creation) foresee(ctx context.Context, known state.VMs, plan func() (platform.Consequences, error)) (found platform.Consequences, err error) {
	var begun []string
	if c.cluster.Description.MakesMachines() {
		if begun, err = c.halfMade(ctx, known); err != nil {
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
	if err := found.Refused(c.cluster.Description, c.AllowReplace, failed); err != nil {
		return found, err
	}
	return found, c.cluster.OthersDisksStay(ctx, c.access, known, slices.Concat(found.Removed, found.Replaced))
}

// halfMade are the nodes whose VMs an earlier create had begun, but for those whose machines answer with a configuration:
// a note does not know what was done since from another machine.
func (c *creation) halfMade(ctx context.Context, known state.VMs) ([]string, error) {
	ids, err := c.cluster.StateFiles(c.access.Values).Begun(ctx)
	if err != nil {
		return nil, err
	}
	machines := c.cluster.Hypervisor(c.access)
	defer machines.Close()
	begun := machines.Begun(ids)
	configured, err := c.cluster.Configured(ctx, c.access, known, begun)
	return slices.DeleteFunc(begun, func(node string) bool { return slices.Contains(configured, node) }), err
}
