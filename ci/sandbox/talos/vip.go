package talos

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"time"

	"tazlab.net/castle/ci/sandbox/profile"
)

// flapAfter is how long the VIP answers before it flaps, from the first control plane being up: enough for one look.
const flapAfter = 600 * time.Millisecond

// keepVIP gives the virtual address to one control plane whose etcd has a quorum, and takes it away when that goes. A holder that ends in
// order takes its key out of etcd. That of one whose power was cut stays there for the lease of its session, 60 s, or until it is back
// and resigns: campaign in internal/app/machined/pkg/controllers/network/operator/vip.go of Talos 1.13.
func (f *Fleet) keepVIP() {
	for f.until(f.ctx, func() bool { return len(f.candidates()) > 0 }) {
		lease, expire := context.WithTimeout(f.ctx, f.Profile.Scaled(f.Profile.Delays.VIPLease))
		f.until(lease, func() bool { return !f.leased() })
		expire()
		if !f.sleep(f.ctx, f.Profile.Delays.VIP) {
			return
		}
		var (
			address netip.Addr
			holder  *machine
			node    Node
		)
		f.change(func() {
			if all := f.candidates(); len(all) > 0 {
				holder = all[0]
				f.holder, address, node = holder, holder.conf.vip, holder.node(holder.conf)
				cluster, _ := holder.own()
				cluster.Lease = holder.vm.ID
				f.keep()
			}
		})
		if holder == nil {
			continue
		}
		f.Cluster.VIP(address, &node)
		f.flap(address, &node, holder)
		f.until(f.ctx, func() bool { return holder.refuses || !slices.Contains(f.candidates(), holder) })
		f.change(func() {
			f.holder = nil
			if holder.ending || holder.ctx.Err() == nil {
				f.release(holder.vm.ID)
			}
		})
		f.Cluster.VIP(address, nil)
	}
}

// leased tells that a machine which is away has the virtual address in etcd, under the lock.
func (f *Fleet) leased() bool {
	all := f.candidates()
	if len(all) == 0 {
		return true // there is no etcd that the lease could end in
	}
	cluster, _ := all[0].own()
	return cluster.Lease != 0 && !slices.ContainsFunc(all, func(m *machine) bool { return m.vm.ID == cluster.Lease })
}

// release takes a machine's key out of etcd, under the lock.
func (f *Fleet) release(id int) {
	for _, c := range f.state.Clusters {
		if c.Lease == id {
			c.Lease = 0
		}
	}
	f.keep()
}

// flap is the fault of that name: once, the address answers for a moment and then not.
func (f *Fleet) flap(address netip.Addr, node *Node, holder *machine) {
	length, wanted := f.Profile.Faults.Duration(profile.VIPFlaps, 10*time.Second)
	if !wanted || f.flapped {
		return
	}
	ctx, cancel := context.WithCancel(f.ctx)
	defer cancel()
	if !f.until(ctx, func() bool {
		up := false
		for _, m := range f.machines {
			up = up || m.control
		}
		return up || !slices.Contains(f.candidates(), holder)
	}) {
		return
	}
	f.flapped = true
	for i, wait := range []time.Duration{flapAfter, length} {
		select {
		case <-time.After(wait): // not scaled: the fault's length is what was asked for
		case <-f.ctx.Done():
			return
		}
		if i == 0 {
			f.Cluster.VIP(address, nil)
		} else {
			f.Cluster.VIP(address, node)
		}
	}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// candidates are the machines that can hold the VIP, by VM id, under the lock.
func (f *Fleet) candidates() []*machine {
	var all []*machine
	for _, m := range f.machines {
		if m.conf != nil && m.conf.vip.IsValid() && m.votes() && !m.ending {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b *machine) int { return a.vm.ID - b.vm.ID })
	// Who resigned stands behind the others.
	slices.SortStableFunc(all, func(a, b *machine) int { return cmp.Compare(bit(a.refuses), bit(b.refuses)) })
	return all
}
