package talos

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// founder founds etcd on the control planes: it bootstraps the one that is ready first, once, and waits until etcd's
// member list is complete.
type founder struct {
	*run
	nodes []*node // control planes

	called    time.Time // last bootstrap call that was accepted, or that may have been
	chosen    int       // the control plane that was called; from then on, no other one is
	before    string    // mark of its etcd before that call
	began     time.Time // when a leader was first seen, or the bootstrap's effect
	ready     time.Time // when all control planes had their configuration
	strangers int       // looks in a row with members that must not be
	split     int       // looks in a row with two leaders
}

// form ends when the quorum is complete.
func (r *run) form(ctx context.Context) error {
	f := &founder{run: r, nodes: r.controlPlanes()}
	s := r.begin(StepEtcd, "")
	for {
		views := r.observe(ctx, false)
		if ctx.Err() != nil {
			return s.end("", ctx.Err())
		}
		quorum := judge(f.nodes, views)
		r.mu.Lock()
		r.quorum = quorum
		r.mu.Unlock()
		if quorum.Complete() {
			if f.called.IsZero() {
				return s.end(ResultUnchanged, nil)
			}
			return s.end(ResultOK, nil)
		}
		if len(quorum.Alarms) > 0 {
			return s.end("", errors.Join(quorum.Alarms...))
		}
		if err := f.ghosts(views, quorum); err != nil {
			return s.end("", err)
		}
		if at := f.candidate(views); at >= 0 && !f.underWay(ctx) {
			if err := f.bootstrap(ctx, at, views[at]); err != nil {
				return s.end("", err)
			}
		}
		s.waiting(quorum.brief())
		if err := pause(ctx, r.options.Poll); err != nil {
			return s.end("", err)
		}
	}
}

// brief leaves out what a node's own step tells already.
func (q Quorum) brief() string {
	if len(q.Members) == 0 {
		return "etcd does not run yet"
	}
	return q.String()
}

// ghosts names what no waiting mends.
func (f *founder) ghosts(views []view, quorum Quorum) error {
	var found []error

	// Data of an etcd that this cluster cannot have written: the machine was in maintenance mode in this run, and there has been no
	// cluster since.
	if f.called.IsZero() && f.began.IsZero() && len(quorum.Members) == 0 {
		for i, v := range views {
			if n := f.nodes[i]; f.seen(n).fresh && v.state != "" && v.state != running && v.data == dataFull {
				found = append(found, &GhostError{Node: n.Name, Address: n.Address, Fresh: true,
					Seen: "it has just been configured and its disk holds etcd data already; etcd is " + v.state})
			}
		}
	}

	if f.began.IsZero() && (len(quorum.Members) > 0 || (!f.called.IsZero() && views[f.chosen].mark != f.before)) {
		f.began = time.Now()
	}

	// One odd look can be a member that is being replaced.
	if ghosts := strangers(quorum.Members); len(ghosts) == 0 {
		f.strangers = 0
	} else if f.strangers++; f.strangers >= strangerLooks {
		for _, ghost := range ghosts {
			found = append(found, ghost)
		}
	}
	if two := separate(views); !two {
		f.split = 0
	} else if f.split++; f.split >= strangerLooks {
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
func (f *founder) stuck(views []view) error {
	if f.ready.IsZero() {
		for _, n := range f.nodes {
			if f.seen(n).configured.IsZero() {
				return nil
			}
		}
		f.ready = time.Now()
	}
	if !f.began.IsZero() || time.Since(f.ready) < f.options.EtcdDeadline {
		return nil
	}
	f.mu.Lock()
	calls := f.bootstraps
	f.mu.Unlock()
	n := f.nodes[f.chosen]
	way := ", or destroy and then create"
	for i, n := range f.nodes {
		if !f.seen(n).fresh && views[i].data != dataEmpty {
			way = "" // somebody's data may be alive
		}
	}
	return fmt.Errorf("etcd of %s does not start: all control planes have their configuration for %s, %s accepted %d bootstrap calls, etcd is %s there; look at talosctl --nodes %s logs etcd%s",
		f.cluster.Name, f.options.EtcdDeadline, n.Name, calls, orNotStarted(views[f.chosen].state), n.Address, way)
}

// late names control planes that did not become members in time.
func (f *founder) late(views []view, quorum Quorum) error {
	var found []error
	for i, v := range views {
		n := f.nodes[i]
		since := f.seen(n).configured
		if since.IsZero() {
			continue // its own step has a deadline
		}
		// Data without a cluster is an etcd that has started somewhere before: it must come back by itself.
		if f.began.IsZero() && v.data != dataFull {
			continue
		}
		if f.began.After(since) {
			since = f.began
		}
		if time.Since(since) < f.options.EtcdDeadline || quorum.healthy(n.Name) {
			continue
		}
		seen := fmt.Sprintf("etcd is %s for %s", orNotStarted(v.state), f.options.EtcdDeadline)
		if v.err != nil {
			seen = "it does not answer any more: " + unwrapped(v.err)
		} else if v.data == dataFull && v.state != running {
			seen += ", with data on its disk"
		} else if v.refused != nil {
			seen += ": " + unwrapped(v.refused)
		}
		// Only a machine that was in maintenance mode in this run cannot hold anything of this cluster.
		if f.seen(n).fresh {
			found = append(found, &GhostError{Node: n.Name, Address: n.Address, Seen: seen, Fresh: true})
		} else {
			found = append(found, &UnwellError{Node: n.Name, Address: n.Address, Seen: seen})
		}
	}
	return errors.Join(found...)
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
