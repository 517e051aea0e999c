package removenode

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/hypervisor"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/talos"
)

// leaving is a node on its way out, and what is there of it.
type leaving struct {
	Options
	session
	described *config.Cluster
	proxmox   proxmox  // nil where castle makes no machines
	machines  machines // all that the state knows
	api       api

	known  state.VMs
	vm     *hypervisor.VM // nil where it is gone
	nodes  []corev1.Node  // of the cluster, this one among them unless it is gone
	etcd   talos.Quorum
	answer bool // the machine answers with the cluster's configuration

	notes []string // what there is to be known at the end, a line each
}

// look finds out what is there of the node, and fails where nobody knows it.
func look(ctx context.Context, on session, described *config.Cluster, options Options) (_ *leaving, err error) {
	l := &leaving{Options: options, session: on, described: described}
	if l.made() {
		l.proxmox = on.Proxmox()
	}
	defer func() {
		if err != nil {
			l.close()
		}
	}()
	if l.known, err = on.OwnMachines(ctx); err != nil {
		return nil, err
	}
	if l.made() {
		if l.vm, err = l.proxmox.Own(ctx, options.Node); err != nil {
			return nil, err
		}
		if err = on.OthersDisksStay(ctx, l.known, []string{options.Node}); err != nil {
			return nil, err
		}
	}
	if l.api, err = on.API(); err != nil {
		return nil, err
	}
	if l.nodes, err = l.api.Nodes(ctx); err != nil {
		return nil, err
	}
	if l.machines, err = on.Machines(l.known); err != nil {
		return nil, err
	}
	if l.etcd, err = l.machines.EtcdQuorum(ctx); err != nil {
		return nil, err
	}
	for _, status := range l.machines.Status(ctx) {
		if status.Name == options.Node {
			l.answer = status.State == talos.IsConfigured
		}
	}
	if err := l.isThere(); err != nil {
		return nil, err
	}
	return l, l.isOff(ctx)
}

// isThere fails where nothing is known of the node, or not enough to remove it.
func (l *leaving) isThere() error {
	name := l.described.Name
	_, inState := l.known[l.Node]
	switch {
	case inState:
		return nil
	case l.vm != nil:
		return fmt.Errorf("VM %d of %s is there, and in no state: put the node back into %s and create, which takes it into the state; then take it out again and remove it", l.vm.ID, l.Node, config.File)
	case l.node() == nil && l.etcd.Without(l.Node).Member == nil:
		var nodes []string
		for _, node := range l.nodes {
			nodes = append(nodes, node.Name)
		}
		return fmt.Errorf("cluster %s has no node %s, or none any more: no state, no machine, no member of etcd and no Node of Kubernetes has that name; its nodes are %s", name, l.Node, strings.Join(nodes, ", "))
	}
	return nil
}

// lostAfter is how long Kubernetes may take to notice that a machine is no more: node-monitor-grace-period is 50 s by default.
const lostAfter = 90 * time.Second

// isOff waits, where no VM of the node is left, until its kubelet is silent. One that goes on is on a machine that is not the cluster's.
func (l *leaving) isOff(ctx context.Context) error {
	if _, inState := l.known[l.Node]; inState {
		return nil
	}
	for end := time.Now().Add(lostAfter); kube.NodeReady(l.node()); {
		if time.Now().After(end) {
			return fmt.Errorf("the node %s is Ready, and no machine of the cluster runs it: it is somebody else's; remove it by hand", l.Node)
		}
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return ctx.Err()
		}
		var err error
		if l.nodes, err = l.api.Nodes(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (l *leaving) close() {
	if l.proxmox != nil {
		l.proxmox.Close()
	}
	if l.machines != nil {
		l.machines.Close()
	}
}

// node is the Node of Kubernetes, nil where there is none.
func (l *leaving) node() *corev1.Node {
	at := slices.IndexFunc(l.nodes, func(node corev1.Node) bool { return node.Name == l.Node })
	if at < 0 {
		return nil
	}
	return &l.nodes[at]
}

// controlPlane tells whether the node is one, or was.
func (l *leaving) controlPlane() bool {
	return l.known[l.Node].Role == config.RoleControlPlane || l.etcd.Without(l.Node).Member != nil
}

// made tells whether castle made the machine, and removes it.
func (l *leaving) made() bool { return l.described.MakesMachines() }

// on tells whether the machine has power. Of one that castle did not make, nothing but its answer tells.
func (l *leaving) on() bool {
	if !l.made() {
		return l.answer
	}
	return l.vm != nil && l.vm.Status == hypervisor.Running
}
