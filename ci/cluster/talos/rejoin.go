package talos

import (
	"context"
	"fmt"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
)

// joinsText is what Talos notes when etcd joins others (buildInitialCluster in internal/app/machined/pkg/system/services/etcd.go of
// Talos 1.13).
const joinsText = "etcd is waiting to join the cluster"

// rejoin has a control plane join anew that was cut while it was a learner. Talos makes a learner a voter only in the start of etcd that
// joined (promoteMember, as above). One that starts again with a learner's data stays one for good, and etcd lets nobody else in. It
// cannot leave either, since Talos does not take a learner's etcd for well. So a voter takes its member out, and the machine wipes the
// partition that etcd's data is on. A learner has never had a vote: it held a copy.
func (f *bootstrapper) rejoin(ctx context.Context, views []view, quorum Quorum) error {
	for i, v := range views {
		n := f.nodes[i]
		member := quorum.at(n.Address)
		if v.pulls() && member != nil && member.unstarted() {
			if err := f.removeUnstarted(ctx, n, *member); err != nil {
				return err
			}
			continue
		}
		if !v.status.GetIsLearner() || v.status.GetLeader() == 0 || member == nil || member.ID != v.status.GetMemberId() {
			delete(f.learners, n.Name)
			continue
		}
		if since, known := f.learners[n.Name]; !known {
			f.learners[n.Name] = time.Now()
			continue
		} else if time.Since(since) < f.options.LearnerGrace {
			continue
		}
		f.learners[n.Name] = time.Now()
		if joins, whole, err := n.logged(ctx, joinsText); joins || !whole || err != nil {
			continue // Talos tries to make it a voter, or may; or it is asked again
		}
		// What else is on that partition may be alive where it was there before this run and pods run.
		if !f.seen(n).fresh && f.cluster.TakesPods(n.Node) {
			return fmt.Errorf("%s (%s) was cut while it joined etcd, and stays a learner that keeps the others out: move what its pods keep at /var elsewhere, "+
				"then talosctl --nodes ADDRESS etcd remove-member %x at another control plane, and talosctl --nodes %s reset --graceful=false --reboot --system-labels-to-wipe %s",
				n.Name, n.Address, member.ID, n.Address, constants.EphemeralPartitionLabel)
		}
		if err := f.rejoinLearner(ctx, n, *member); err != nil {
			return err
		}
		f.furthest[i], f.moved = memberUnreachable, time.Now()
		delete(f.learners, n.Name)
	}
	return nil
}

// unstarted tells of a member that never ran: a machine tells etcd its name when it does.
func (m Member) unstarted() bool { return m.Learner && m.Name == "" }

// removeUnstarted takes out a member whose machine was cut after it had told etcd of itself and before it held any data. Such a machine waits to join
// for good, since its address is taken, and Talos takes only a member of its own name for its own (addMember, as above); nobody else gets
// in meanwhile. It joins by itself then.
func (f *bootstrapper) removeUnstarted(ctx context.Context, n *node, member Member) error {
	since, known := f.learners[n.Name]
	switch {
	case !known:
		f.learners[n.Name] = time.Now()
		return nil
	case time.Since(since) < f.options.LearnerGrace: // it starts etcd within a moment
		return nil
	}
	delete(f.learners, n.Name)
	s := f.begin(StepRejoin, n.Name)
	s.waiting(n.Name + " was cut before its etcd started, and joins anew")
	if err := f.RemoveMember(ctx, member); err != nil {
		return s.end("", err)
	}
	f.moved = time.Now()
	return s.end(ResultOK, nil)
}

// rejoinLearner takes a learner out of etcd, and its data off its machine, which restarts.
func (f *bootstrapper) rejoinLearner(ctx context.Context, n *node, member Member) error {
	s := f.begin(StepRejoin, n.Name)
	s.waiting(n.Name + " was cut while it joined etcd, and joins anew")
	if err := f.RemoveMember(ctx, member); err != nil {
		return s.end("", err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := n.client.ResetGeneric(ctx, &machine.ResetRequest{
		Reboot: true, SystemPartitionsToWipe: []*machine.ResetPartitionSpec{{Label: constants.EphemeralPartitionLabel, Wipe: true}},
	}); err != nil {
		return s.end("", fmt.Errorf("%s does not wipe a learner's data: %w", n.Name, err))
	}
	return s.end(ResultOK, nil)
}
