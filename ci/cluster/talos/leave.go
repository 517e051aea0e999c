package talos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/client"
	"google.golang.org/grpc/codes"
)

const (
	// LeavePatience is how long Talos tries to leave an etcd that is not well, every ten seconds (LeaveCluster in internal/pkg/etcd/etcd.go of
	// Talos 1.13).
	LeavePatience = 5 * time.Minute
	// leaveTimeout bounds that call: Talos says itself why it gave up, and stops etcd and removes its data after it was let go.
	leaveTimeout = LeavePatience + time.Minute
	// removeTimeout bounds one call that takes a member out, and settleLimit how long it is repeated while etcd is not well.
	removeTimeout = 30 * time.Second
	settleLimit   = time.Minute
)

// unhealthy is what etcd says while a member that its quorum counts has been connected for less than five seconds (mayRemoveMember in
// server/etcdserver/server.go of etcd 3.6). Talos hands it on without a code of its own.
const unhealthy = "etcdserver: unhealthy cluster"

// Without is etcd without one of its members.
type Without struct {
	Member *Member // the one that is to go; nil where it is none, or none any more
	Voters int     // the others
	// Healthy are those of the others that answer for themselves.
	Healthy int
}

// Without looks at etcd as it would be without the member of a node, which need not be declared: its name counts, too.
func (q Quorum) Without(node string) Without {
	var w Without
	for i, member := range q.Members {
		switch {
		case member.Node == node, member.Node == "" && member.Name == node:
			w.Member = &q.Members[i]
		case member.Learner:
		default:
			w.Voters++
			if member.Healthy {
				w.Healthy++
			}
		}
	}
	return w
}

// Holds says why the others would have no quorum; nil where they would.
func (w Without) Holds() error {
	if needed := w.Voters/2 + 1; w.Healthy < needed {
		return fmt.Errorf("etcd would have %s, and needs %d for a quorum", w, needed)
	}
	return nil
}

func (w Without) String() string { return fmt.Sprintf("%d of %d members healthy", w.Healthy, w.Voters) }

// LeaveEtcd has a control plane leave etcd: its member is taken out, its etcd ends, and the data of its member is removed. Nodes of Talos
// 1.13.9 took 7 to 17 s.
func (a *Access) LeaveEtcd(ctx context.Context, node string) error {
	n, err := a.named(node)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	if err := n.client.EtcdLeaveCluster(ctx, &machine.EtcdLeaveClusterRequest{}); err != nil {
		return fmt.Errorf("%s does not leave etcd: %w", node, err)
	}
	return nil
}

// RemoveMember takes a member out of etcd whose machine does not answer, by the first control plane that does. One that is not there
// any more is no error. Where etcd is not well, as when another member has just come back, it is tried again for a while.
func (a *Access) RemoveMember(ctx context.Context, member Member) error {
	for end := time.Now().Add(settleLimit); ; {
		err := a.removeMember(ctx, member)
		if err == nil || !strings.Contains(err.Error(), unhealthy) || time.Now().After(end) {
			return err
		}
		if err := pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

func (a *Access) removeMember(ctx context.Context, member Member) error {
	var failures []error
	for _, n := range a.controlPlanes() {
		if n.Name == member.Node {
			continue
		}
		call, cancel := context.WithTimeout(ctx, removeTimeout)
		err := n.client.EtcdRemoveMemberByID(call, &machine.EtcdRemoveMemberByIDRequest{MemberId: member.ID})
		cancel()
		if err == nil || client.StatusCode(err) == codes.NotFound {
			return nil
		}
		failures = append(failures, fmt.Errorf("%s: %w", n.Name, err))
	}
	return fmt.Errorf("no control plane takes the member %x (%s) out of etcd: %w", member.ID, member.Name, errors.Join(failures...))
}

// Reset has a machine wipe its disk and switch itself off. It has only begun with that when Reset returns.
func (a *Access) Reset(ctx context.Context, node string) error {
	n, err := a.named(node)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := n.client.Reset(ctx, true, false); err != nil {
		return fmt.Errorf("%s does not reset itself: %w", node, err)
	}
	return nil
}

func (a *Access) named(name string) (*node, error) {
	for _, n := range a.nodes {
		if n.Name == name {
			return n, nil
		}
	}
	return nil, fmt.Errorf("no address of %s is known", name)
}
