package talos

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"time"
)

// bootstrapPhase is how far the bootstrap of etcd has come.
type bootstrapPhase int

const (
	bootstrapNone       bootstrapPhase = iota // no control plane was called
	bootstrapCalled                           // one was, and accepted it, or said that its data directory is not empty
	bootstrapUnanswered                       // one was, and only Talos knows whether that had an effect
	bootstrapUnderWay                         // Talos says that it bootstraps
)

// bootstrapper bootstraps the control plane that is ready first, once, and waits until etcd's member list is complete.
type bootstrapper struct {
	*run
	nodes []*node // control planes

	phase    bootstrapPhase
	since    time.Time // of the phase
	chosen   int       // the control plane that was called; from then on, no other one is
	called   bool      // by this run
	accepted time.Time // first call that was
	refusal  string    // why the last call was not accepted; ""
	revision string    // of the chosen one's etcd when Talos said that it bootstraps

	configured time.Time            // when all control planes had their configuration
	founded    time.Time            // when a member was first seen, or Talos said that it bootstraps
	furthest   []memberStage        // that each control plane has come to
	moved      time.Time            // when one of them last got further
	learners   map[string]time.Time // since when a control plane is a learner, or was last asked why
	undeclared streak               // looks at members that must not be
	split      streak               // looks at two leaders
}

func (f *bootstrapper) enter(phase bootstrapPhase) { f.phase, f.since = phase, time.Now() }

// form ends when the quorum is complete.
func (r *run) form(ctx context.Context) error {
	f := &bootstrapper{run: r, nodes: r.controlPlanes(), learners: map[string]time.Time{}}
	for !slices.ContainsFunc(f.nodes, r.there) {
		if err := pause(ctx, r.options.Poll); err != nil {
			return err
		}
	}
	s := r.begin(StepEtcd, "")
	for {
		views := observe(f.nodes, func(n *node) view {
			if !r.there(n) {
				return view{err: fmt.Errorf("%s: its machine is not made yet", n.Name)}
			}
			return n.etcd(ctx, false)
		})
		if ctx.Err() != nil {
			return s.end("", ctx.Err())
		}
		quorum := quorumOf(f.nodes, views)
		r.mu.Lock()
		r.quorum = quorum
		r.mu.Unlock()
		if quorum.Complete() {
			if !f.called {
				return s.end(ResultUnchanged, nil)
			}
			return s.end(ResultOK, nil)
		}
		if len(quorum.Alarms) > 0 {
			return s.end("", errors.Join(quorum.Alarms...))
		}
		if err := f.diagnose(views, quorum); err != nil {
			return s.end("", err)
		}
		if err := f.rejoin(ctx, views, quorum); err != nil {
			return s.end("", err)
		}
		if at := f.candidate(views); at >= 0 && !f.underWay(ctx, views) {
			if err := f.bootstrap(ctx, at); err != nil {
				return s.end("", err)
			}
		}
		s.waiting(f.brief(views, quorum))
		if err := pause(ctx, r.options.Poll); err != nil {
			return s.end("", err)
		}
	}
}

// brief leaves out what a node's own step tells already.
func (f *bootstrapper) brief(views []view, quorum Quorum) string {
	switch {
	case len(quorum.Members) > 0:
		return quorum.String()
	case f.phase != bootstrapNone && views[f.chosen].pulls():
		return "pulling etcd on " + f.nodes[f.chosen].Name
	case f.refusal != "":
		return "etcd does not run yet: " + brief(f.refusal)
	}
	return "etcd does not run yet"
}

// memberStage is how far a control plane has come on its way into etcd, in Talos's words for the service and etcd's for its member.
type memberStage int

const (
	memberUnreachable memberStage = iota
	memberBooting                 // no services yet
	memberPreparing               // etcd's image is pulled, and nothing is on its disk
	memberStarting                // with data
	memberRunning                 // and not yet in the member list
	memberLearner                 // receives the log
	memberVoter
	memberHealthy
)

// pulls tells that a control plane prepares etcd and has had no data of it: it pulls the image, and joins then.
func (v view) pulls() bool { return v.err == nil && v.state == preparing && v.data == dataEmpty }

// needs tells that a control plane has not begun with etcd, for want of what that needs, such as a clock that is in step.
func (v view) needs() bool { return v.err == nil && v.state == waits }

func (v view) stage() memberStage {
	switch {
	case v.err != nil:
		return memberUnreachable
	case v.state == "":
		return memberBooting
	case v.state != running && v.data != dataFull:
		return memberPreparing
	case v.state != running:
		return memberStarting
	case v.status == nil:
		return memberRunning
	case v.status.GetIsLearner():
		return memberLearner
	default:
		return memberVoter
	}
}

// advance notes when a control plane gets further than it ever was. A slow join, of which etcd lets in one at a time, is no
// standstill; an etcd that starts over and over is.
func (f *bootstrapper) advance(views []view, quorum Quorum) {
	if f.furthest == nil {
		f.furthest = make([]memberStage, len(views))
	}
	for i, v := range views {
		reached := v.stage()
		if quorum.healthy(f.nodes[i].Name) {
			reached = memberHealthy
		}
		if reached > f.furthest[i] {
			f.furthest[i], f.moved = reached, time.Now()
		}
	}
}

// diagnose names what waiting longer cannot help.
func (f *bootstrapper) diagnose(views []view, quorum Quorum) error {
	var found []error

	// Data of an etcd that this cluster cannot have written: the machine was in maintenance mode in this run, and there has been no
	// cluster since.
	if f.phase == bootstrapNone && f.founded.IsZero() && len(quorum.Members) == 0 {
		for i, v := range views {
			if n := f.nodes[i]; f.seen(n).fresh && v.state != "" && v.state != running && v.data == dataFull {
				found = append(found, &GhostError{Node: n.Name, Address: n.Address, Fresh: true,
					Seen: "it has just been configured and its disk holds etcd data already; etcd is " + v.state})
			}
		}
	}

	if f.founded.IsZero() && (len(quorum.Members) > 0 || f.phase == bootstrapUnderWay) {
		f.founded = time.Now()
	}
	f.advance(views, quorum)

	if ghosts := strangers(quorum.Members); len(ghosts) == 0 {
		f.undeclared = streak{}
	} else if f.undeclared.add(); f.undeclared.many() {
		for _, ghost := range ghosts {
			found = append(found, ghost)
		}
	}
	if !separate(views) {
		f.split = streak{}
	} else if f.split.add(); f.split.many() {
		for i, v := range views {
			if v.status.GetLeader() != 0 && i > 0 && v.status.GetLeader() != views[0].status.GetLeader() {
				n := f.nodes[i]
				found = append(found, &GhostError{Node: n.Name, Address: n.Address, Seen: "it is a member of another etcd than " + f.nodes[0].Name})
			}
		}
	}
	if len(found) > 0 {
		return errors.Join(found...)
	}
	if err := f.late(views, quorum); err != nil {
		return err
	}
	return f.stuck(views)
}

// stuck ends a wait for an etcd that nothing starts, such as bootstrap calls without any effect.
func (f *bootstrapper) stuck(views []view) error {
	if f.configured.IsZero() {
		for _, n := range f.nodes {
			if f.seen(n).stage != machineRunning {
				return nil
			}
		}
		f.configured = time.Now()
	}
	f.mu.Lock()
	calls := f.bootstraps
	f.mu.Unlock()
	deadline, last := f.options.EtcdDeadline, ""
	if f.refusal != "" { // it answers, and says why not yet: its clock, or what it still does
		deadline, last = f.options.PullDeadline, ", the last answer was: "+brief(f.refusal)
	}
	since := f.configured
	if f.accepted.After(since) {
		since = f.accepted
	}
	if !f.founded.IsZero() || time.Since(since) < deadline {
		return nil
	}
	n := f.nodes[f.chosen]
	way := ", or destroy and then create"
	for i, n := range f.nodes {
		if !f.seen(n).fresh && views[i].data != dataEmpty {
			way = "" // somebody's data may be alive
		}
	}
	return fmt.Errorf("etcd of %s does not start: all control planes have their configuration for %s, %s accepted %d bootstrap calls, etcd is %s there%s; look at talosctl --nodes %s logs etcd%s",
		f.cluster.Name, deadline, n.Name, calls, orNotStarted(views[f.chosen].state), last, n.Address, way)
}

// late names control planes that did not become members, and that do not get any further.
func (f *bootstrapper) late(views []view, quorum Quorum) error {
	var found []error
	for i, v := range views {
		n := f.nodes[i]
		machine := f.seen(n)
		if machine.stage != machineRunning {
			continue // its own step has a deadline
		}
		since := machine.since
		// Data without a cluster is an etcd that has started somewhere before: it must come back by itself.
		if f.founded.IsZero() && v.data != dataFull {
			continue
		}
		for _, later := range []time.Time{f.founded, f.moved} {
			if later.After(since) {
				since = later
			}
		}
		member := quorum.at(n.Address)
		taken := member != nil && member.Name != "" && member.Name != n.Name && !member.Healthy
		deadline := f.options.EtcdDeadline
		if v.pulls() && !taken || v.needs() {
			deadline = f.options.PullDeadline
		}
		if time.Since(since) < deadline || quorum.healthy(n.Name) {
			continue
		}
		seen := fmt.Sprintf("etcd is %s for %s", orNotStarted(v.state), deadline)
		switch {
		case v.err != nil:
			seen = "it does not answer any more: " + unwrapped(v.err)
		case v.pulls():
			seen = "pulling etcd, and no data of it yet"
		case v.needs():
			seen = "etcd waits for what it needs, such as a clock that is in step"
		case v.data == dataFull && v.state != running:
			seen += ", with data on its disk"
		case v.refused != nil:
			seen += ": " + unwrapped(v.refused)
		}
		// Only a machine that was in maintenance mode in this run cannot hold anything of this cluster; and what it holds is another's
		// only where etcd does not know it.
		switch {
		case v.pulls() && taken:
			found = append(found, &GhostError{Node: n.Name, Address: n.Address,
				Seen: fmt.Sprintf("etcd has the member %x (%s) at its address", member.ID, member.Name)})
		case machine.fresh && v.data == dataFull && len(quorum.Members) > 0 && member == nil:
			found = append(found, &GhostError{Node: n.Name, Address: n.Address, Seen: seen + ", and etcd has no member there", Fresh: true})
		case machine.fresh, v.pulls(), v.needs():
			found = append(found, &LateError{Node: n.Name, Address: n.Address, Waited: deadline.String(), Seen: seen})
		default:
			found = append(found, &UnwellError{Node: n.Name, Address: n.Address, Seen: seen})
		}
	}
	return errors.Join(found...)
}

// at is the member that etcd has at an address, nil where it has none.
func (q Quorum) at(address netip.Addr) *Member {
	for i, member := range q.Members {
		if member.Address == address {
			return &q.Members[i]
		}
	}
	return nil
}

func (q Quorum) healthy(node string) bool {
	for _, member := range q.Members {
		if member.Node == node && member.Healthy {
			return true
		}
	}
	return false
}

// separate tells that two control planes follow different leaders and do not know each other.
func separate(views []view) bool {
	for _, x := range views {
		for _, y := range views {
			if x.status.GetLeader() == 0 || y.status.GetLeader() == 0 || x.status.GetLeader() == y.status.GetLeader() {
				continue
			}
			known := false
			for _, member := range x.members {
				known = known || member.GetId() == y.status.GetMemberId()
			}
			if len(x.members) > 0 && !known {
				return true
			}
		}
	}
	return false
}

func orNotStarted(state string) string {
	if state == "" {
		return "not started"
	}
	return state
}
