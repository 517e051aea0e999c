package talos

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tazlab.net/castle/ci/sandbox/profile"
)

const etcdID = "etcd"

// runEtcd is the etcd service of a control plane.
func (m *machine) runEtcd(ctx context.Context) {
	f := m.fleet
	conf := m.settings()
	f.mu.Lock()
	synced := m.synced
	f.mu.Unlock()
	if !synced { // Condition in internal/app/machined/pkg/system/services/etcd.go of Talos 1.13
		m.report("Waiting", "Waiting for time sync")
		if !f.until(ctx, func() bool { return m.synced }) {
			return
		}
	}
	m.report("Preparing", "Running pre state")
	// The image comes first (PreFunc, as above). A bootstrap stops the service in the middle of that, and what containerd has by then is kept.
	var pulling sync.WaitGroup
	defer pulling.Wait()
	pulling.Go(func() {
		if m.pull(ctx, conf, conf.provider.Cluster().Etcd().Image()) {
			f.change(func() { m.image = true })
		}
	})
	var known bool
	f.mu.Lock()
	known = f.state.disk(m.vm.ID).Etcd != nil
	f.mu.Unlock()
	if !known && !m.enroll(ctx, conf) {
		return
	}
	joined := !known
	if !f.until(ctx, func() bool { return m.image }) {
		return
	}

	// From here on the data directory says whose member this machine is. Without its place there it does not get further.
	mine := func() *member {
		data := f.state.disk(m.vm.ID).Etcd
		if data == nil {
			return nil
		}
		if cluster := f.state.cluster(data.Cluster); cluster != nil && cluster.CA == conf.etcd {
			return cluster.member(data.Member)
		}
		return nil
	}
	if !f.until(ctx, func() bool { return mine() != nil }) {
		return
	}
	f.change(func() {
		m.member, m.began = true, time.Now()
		m.services.set(etcdID, "Running", "Started task etcd")
		if cluster, me := m.own(); f.Profile.Faults.Is(profile.EtcdAlarm, m.vm.ID) && !me.Learner && !slices.Contains(cluster.Alarms, me.ID) {
			cluster.Alarms = append(cluster.Alarms, me.ID)
			f.keep()
		}
	})
	if joined { // argsForControlPlane and Runner in internal/app/machined/pkg/system/services/etcd.go of Talos 1.13
		go m.promote(ctx, mine)
	}
	f.until(ctx, func() bool { return mine() == nil }) // it left, was removed, or lost its data
	f.change(func() {
		m.member = false
		m.services.set(etcdID, "Finished", "Service finished successfully")
	})
}

// enroll waits for a bootstrap, or for a cluster to join, and puts the result on the disk. It waits while another machine is a learner:
// etcd lets in one at a time (ErrTooManyLearners in server/etcdserver/errors.go of etcd 3.6.8).
func (m *machine) enroll(ctx context.Context, conf *settings) bool {
	f := m.fleet
	for {
		var cluster *etcd
		asked, stop := false, false
		if !f.until(ctx, func() bool {
			asked, stop, cluster = m.bootstrap, m.stopping && !m.stopped, nil
			if !m.stopping && m.image {
				cluster = f.open(conf, m.live)
			}
			return asked || stop || cluster != nil
		}) {
			return false
		}
		switch {
		case asked:
			return m.found(ctx, conf)
		case stop:
			if !m.end(ctx) {
				return false
			}
			continue
		}
		f.change(func() { m.services.note(joinsText) })
		if !f.sleep(ctx, f.Profile.Delays.EtcdJoin*2/3) {
			return false
		}
		var me *member
		f.change(func() {
			if cluster = f.open(conf, m.live); cluster == nil {
				return // its quorum went meanwhile
			}
			// A machine whose disk is empty takes a member of its own name out before it joins, as Talos does.
			cluster.Members = slices.DeleteFunc(cluster.Members, func(old *member) bool { return old.Name == conf.hostname })
			me = &member{ID: random(), Address: m.live, Learner: true} // its name comes with its etcd
			cluster.Members = append(cluster.Members, me)
			f.keep()
		})
		if me == nil {
			continue
		}
		// A machine that is cut here has no data, and an address that is taken.
		if !f.sleep(ctx, f.Profile.Delays.EtcdJoin/3) {
			return false
		}
		f.change(func() {
			me.Name = conf.hostname
			f.state.disk(m.vm.ID).Etcd = &dataDir{Cluster: cluster.ID, Member: me.ID}
			f.keep()
		})
		return true
	}
}

// stopEtcd stops the service for a bootstrap, and tells whether it has before the caller left. Whoever leaves, it stops all the same,
// and nothing but another bootstrap or a restart of the machine starts it again: stopServices and Run in
// internal/app/machined/pkg/system of Talos 1.13, where a service that is stopped while it prepares has finished.
func (m *machine) stopEtcd(ctx context.Context) bool {
	f := m.fleet
	if !f.Profile.Faults.Has(profile.BootstrapSlow) {
		return true
	}
	f.change(func() { m.stopping = true })
	return f.until(ctx, func() bool { return m.stopped })
}

// end is the time that the service takes for that.
func (m *machine) end(ctx context.Context) bool {
	slow, _ := m.fleet.Profile.Faults.Duration(profile.BootstrapSlow, 10*time.Second)
	if !pass(ctx, slow) {
		return false
	}
	m.fleet.change(func() {
		m.stopped = true
		m.services.set(etcdID, "Finished", "Service finished successfully")
	})
	return true
}

// found makes a cluster of one. A repeated call begins anew, as it restarts the service.
func (m *machine) found(ctx context.Context, conf *settings) bool {
	f := m.fleet
	for {
		f.change(func() {
			m.bootstrap = false
			m.services.anew(etcdID)
			m.services.set(etcdID, "Preparing", "Running pre state")
		})
		if !f.until(ctx, func() bool { return m.image || m.bootstrap }) {
			return false
		}
		bootstrap, cancel := context.WithTimeout(ctx, max(f.Profile.Scaled(f.Profile.Delays.Bootstrap), time.Nanosecond))
		again := f.until(bootstrap, func() bool { return m.bootstrap })
		cancel()
		if ctx.Err() != nil {
			return false
		}
		if again {
			continue
		}
		f.change(func() {
			me := &member{ID: random(), Name: conf.hostname, Address: m.live}
			cluster := &etcd{ID: random(), CA: conf.etcd, Members: []*member{me}}
			f.state.Clusters = append(f.state.Clusters, cluster)
			f.state.disk(m.vm.ID).Etcd = &dataDir{Cluster: cluster.ID, Member: me.ID}
			f.keep()
		})
		return true
	}
}

// joinsText is what buildInitialCluster in internal/app/machined/pkg/system/services/etcd.go of Talos 1.13 notes.
const joinsText = "etcd is waiting to join the cluster, if this node is the first node in the cluster, please run `talosctl bootstrap` against one of the following IPs:"

// promote makes a learner a voter, which takes a leader. Only the start of etcd that has joined does so: a machine that starts again
// with a learner's data, as after a power cut, has a learner for good, and nobody else gets in (promoteMember, as above).
func (m *machine) promote(ctx context.Context, mine func() *member) {
	f := m.fleet
	f.mu.Lock()
	me := mine()
	learner := me != nil && me.Learner
	f.mu.Unlock()
	if !learner || !f.sleep(ctx, f.Profile.Delays.EtcdPromote) {
		return
	}
	if f.until(ctx, func() bool { return me.Learner && m.leader() != 0 }) {
		f.change(func() {
			me.Learner = false
			m.looked = time.Now().Add(f.Profile.Scaled(f.Profile.Delays.EtcdHealth)) // HealthSettings, as above
			f.keep()
		})
	}
}

// report tells a change of the etcd service.
func (m *machine) report(state, message string) {
	m.fleet.change(func() { m.services.set(etcdID, state, message) })
}

// open is the cluster that a machine can join, under the lock: of its authority, with a leader, without a learner, and without a member
// of another name at its address, which etcd does not give twice.
func (f *Fleet) open(conf *settings, address netip.Addr) *etcd {
	for _, c := range f.state.Clusters {
		if c.CA != conf.etcd || c.leader == 0 {
			continue
		}
		if slices.ContainsFunc(c.Members, func(m *member) bool { return (m.Address == address || m.Learner) && m.Name != conf.hostname }) {
			continue
		}
		return c
	}
	return nil
}

// elect brings the leaders of all clusters up to date, under the lock.
func (f *Fleet) elect() {
	for _, c := range f.state.Clusters {
		voters, online := 0, []uint64{}
		for _, m := range c.Members {
			if m.Learner {
				continue
			}
			voters++
			if f.process(c, m.ID) {
				online = append(online, m.ID)
			}
		}
		switch {
		case len(online) <= voters/2:
			c.leader = 0
		case !slices.Contains(online, c.leader):
			c.leader = slices.Min(online)
			c.term++
		}
	}
}

// process tells whether a member's etcd runs somewhere, under the lock.
func (f *Fleet) process(c *etcd, id uint64) bool { return f.runner(c, id) != nil }

// settled tells whether it has run for long enough to count where members are changed, under the lock: numConnectedSince in
// server/etcdserver/cluster_util.go of etcd 3.6.8, with the HealthInterval of server.go beside it.
func (f *Fleet) settled(c *etcd, id uint64) bool {
	m := f.runner(c, id)
	return m != nil && time.Since(m.began) >= f.Profile.Scaled(f.Profile.Delays.EtcdSettles)
}

// runner is the machine that a member's etcd runs on, under the lock; nil where it runs on none.
func (f *Fleet) runner(c *etcd, id uint64) *machine {
	for _, m := range f.machines {
		if data := f.state.disk(m.vm.ID).Etcd; m.member && data != nil && data.Cluster == c.ID && data.Member == id {
			return m
		}
	}
	return nil
}

// own is the cluster and the member that a machine's disk names, nil where it is none, under the lock.
func (m *machine) own() (*etcd, *member) {
	data := m.fleet.state.disk(m.vm.ID).Etcd
	if data == nil {
		return nil, nil
	}
	c := m.fleet.state.cluster(data.Cluster)
	if c == nil {
		return nil, nil
	}
	return c, c.member(data.Member)
}

// leader is the leader that a machine's running etcd knows, under the lock; 0 for none.
func (m *machine) leader() uint64 {
	if c, me := m.own(); m.member && c != nil && me != nil {
		return c.leader
	}
	return 0
}

// votes tells that a machine is a voter of an etcd that has a quorum, under the lock.
func (m *machine) votes() bool {
	_, me := m.own()
	return me != nil && !me.Learner && m.leader() != 0
}

var (
	errNotEnoughStarted = errors.New("etcdserver: re-configuration failed due to not enough started members")
	errUnhealthy        = errors.New("etcdserver: unhealthy cluster")
)

// notRemoved is what Talos makes of it: RemoveMemberByMemberID in internal/pkg/etcd/etcd.go of Talos 1.13, and what its callers put before.
func notRemoved(what string, id uint64, refused error) error {
	return status.Errorf(codes.Unknown, "%s: failed to remove member %d: %v", what, id, refused)
}

// removable says why etcd does not let a member go, under the lock: mayRemoveMember in server/etcdserver/server.go of etcd 3.6.8,
// whose strict check of reconfigurations Talos leaves on. One that has not run for as long as EtcdSettles counts for nothing yet.
func (f *Fleet) removable(c *etcd, id uint64) error {
	voters, active := 0, 0
	for _, m := range c.Members {
		if m.ID == id && m.Learner {
			return nil
		}
		if m.Learner {
			continue
		}
		voters++
		if f.settled(c, m.ID) {
			active++
		}
	}
	switch {
	case voters == 1:
		return errNotEnoughStarted
	case !f.process(c, id): // it is no part of the quorum
		return nil
	case active-1 < 1+(voters-1)/2:
		return errUnhealthy
	}
	return nil
}

// leavePatience is how long a machine tries to leave an etcd that is not well, and leaveEvery how often at most.
const (
	leavePatience = 5 * time.Minute
	leaveEvery    = 10 * time.Millisecond
)

// leaveEtcd takes the machine's own member out, which it tries again after a while where etcd is not well, stops its etcd, and removes its
// data: LeaveCluster in internal/pkg/etcd/etcd.go of Talos 1.13. A caller who leaves while etcd stops finds a member that is out, and its
// data in place. One that was taken out already is no mistake.
func (m *machine) leaveEtcd(ctx context.Context) error {
	f := m.fleet
	patience, cancel := context.WithTimeout(ctx, leavePatience)
	defer cancel()
	for {
		id, refused := m.tryToLeave()
		if errors.Is(refused, errUnhealthy) && pass(patience, max(f.Profile.Scaled(f.Profile.Delays.EtcdLeaveAgain), leaveEvery)) {
			continue
		}
		switch {
		case errors.Is(refused, errUnhealthy), errors.Is(refused, errNotEnoughStarted):
			return notRemoved("failed to leave cluster", id, refused)
		case refused != nil:
			return refused
		}
		break
	}
	if !f.sleep(ctx, f.Profile.Delays.EtcdLeave) {
		return status.Errorf(codes.Unknown, "failed to leave cluster: failed to stop etcd: %v", ctx.Err())
	}
	f.change(func() {
		f.state.disk(m.vm.ID).Etcd = nil
		f.keep()
	})
	return nil
}

// tryToLeave asks etcd once to take the machine's own member out, which it returns the id of.
func (m *machine) tryToLeave() (id uint64, refused error) {
	f := m.fleet
	f.change(func() {
		cluster, me := m.own()
		switch {
		case cluster == nil, me != nil && cluster.leader == 0:
			refused = notReached()
		case me != nil:
			id = me.ID
			if refused = f.removable(cluster, id); refused == nil {
				f.leave(cluster, id)
			}
		}
	})
	return id, refused
}

// leave takes a member out of its cluster, under the lock.
func (f *Fleet) leave(c *etcd, id uint64) {
	c.Members = slices.DeleteFunc(c.Members, func(m *member) bool { return m.ID == id })
	f.keep()
}
