package removenode

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tazlab.net/castle/ci/cluster/hypervisor"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/talos"
)

const (
	// resetLimit is how long a machine may take to wipe itself and switch itself off. Its disk goes with its VM all the same.
	resetLimit = 10 * time.Minute
	// memberLimit is how long etcd may take to show that a member is gone.
	memberLimit = time.Minute
)

// drain takes the pods off the node. Where its machine does not run, nobody can end them: they go with the Node of Kubernetes.
func (l *leaving) drain(ctx context.Context) error {
	return l.Step("drain "+l.Node, func(tell func(string)) (bool, error) {
		if l.node() == nil {
			return false, nil
		}
		if !l.runs() {
			tell("its machine does not run, so that its pods go with the node")
			return true, l.api.Cordon(ctx, l.Node)
		}
		if err := l.api.Drain(ctx, l.Node, l.DrainTimeout, tell); err != nil {
			return true, fmt.Errorf("%w; make room for them, and call again, or give up with kubectl uncordon %s", err, l.Node)
		}
		return true, nil
	})
}

// runs tells whether the machine can end pods: it has power, and Talos or the kubelet answers.
func (l *leaving) runs() bool { return l.on() && (l.answer || kube.NodeReady(l.node())) }

// leaveEtcd takes the node's member out of etcd: by the node itself, which stops its etcd then, or by another one where it is silent.
func (l *leaving) leaveEtcd(ctx context.Context) error {
	if !l.controlPlane() {
		return nil
	}
	without := l.etcd.Without(l.Node)
	return l.Step(fmt.Sprintf("etcd without %s: %s", l.Node, without), func(tell func(string)) (bool, error) {
		if without.Member == nil {
			return false, nil
		}
		leave := func() error { return l.machines.LeaveEtcd(ctx, l.Node) }
		if !l.on() || !l.answer {
			tell("its machine does not answer, so that another one takes its member out")
			leave = func() error { return l.machines.RemoveMember(ctx, *without.Member) }
		} else {
			tell(fmt.Sprintf("Talos takes its member out and stops its etcd, and tries for %s where etcd is not well", talos.LeavePatience))
		}
		if err := leave(); err != nil {
			return true, err
		}
		return true, l.isNoMember(ctx, tell)
	})
}

// isNoMember waits until etcd says so.
func (l *leaving) isNoMember(ctx context.Context, tell func(string)) error {
	bounded, cancel := context.WithTimeout(ctx, memberLimit)
	defer cancel()
	for {
		seen, err := l.machines.EtcdQuorum(bounded)
		if err == nil && seen.Leader != "" && seen.Without(l.Node).Member == nil {
			return nil
		}
		if err == nil {
			err = errors.New(seen.String())
		}
		tell(err.Error())
		select {
		case <-time.After(250 * time.Millisecond):
		case <-bounded.Done():
			return fmt.Errorf("%s does not come out of etcd: %w", l.Node, errors.Join(err, ctx.Err()))
		}
	}
}

// reset has the machine wipe its disk and switch itself off.
func (l *leaving) reset(ctx context.Context) error {
	return l.Step("reset "+l.Node, func(tell func(string)) (bool, error) {
		if !l.made() {
			return l.giveBack(ctx, tell)
		}
		if !l.on() {
			return false, nil
		}
		if !l.answer {
			tell("its machine does not answer; its disks go with its VM")
			return false, nil
		}
		// Minutes have passed, and what is wiped is named by its address.
		if _, err := l.OwnMachines(ctx); err != nil {
			return false, err
		}
		if err := l.machines.Reset(ctx, l.Node); err != nil {
			return true, err
		}
		off, err := l.proxmox.AwaitOff(ctx, l.Node, resetLimit)
		if err == nil && !off {
			tell(fmt.Sprintf("it is still on after %s; its disks go with its VM", resetLimit))
		}
		return true, err
	})
}

// giveBack has a machine that castle did not make wipe what it holds of the cluster, and wait in maintenance mode. One that does not answer
// with the cluster's own PKI is left as it is.
func (l *leaving) giveBack(ctx context.Context, tell func(string)) (bool, error) {
	known, inState := l.known[l.Node]
	switch {
	case !inState:
		return false, nil
	case !l.answer:
		left := fmt.Sprintf("%s (%s) does not answer and was left as it is, with the cluster's keys and its data: wipe it before it is started again", l.Node, known.Address)
		seen, err := l.machines.StatusOf(ctx, l.Node)
		if err == nil && seen.State == talos.InMaintenance {
			return false, nil
		}
		l.notes = append(l.notes, left)
		tell(left)
		return false, err
	}
	if err := l.machines.GiveBack(ctx, l.Node, true); err != nil {
		return true, err
	}
	return true, l.machines.AwaitMaintenance(ctx, l.Node, talos.GiveBackLimit, tell)
}

// removeVM removes the VM with its disks and its place in the state, once it is known again to be the cluster's.
func (l *leaving) removeVM(ctx context.Context) error {
	vm, inState := l.known[l.Node]
	if !inState {
		return nil
	}
	var kept []hypervisor.Leftover
	if l.vm != nil { // what cannot be looked up now cannot be afterwards, and that is said there
		kept, _ = l.proxmox.Unreferenced(ctx, []hypervisor.VM{*l.vm})
	}
	err := run.Patiently(ctx, func(bool) error {
		if _, err := l.OwnMachines(ctx); err != nil {
			return err
		}
		return l.ApplyNode(ctx, run.OneNode{Name: l.Node, ID: vm.ID})
	})
	if err != nil {
		return err
	}
	if !l.made() {
		return nil
	}
	left, err := l.proxmox.Own(ctx, l.Node)
	if err == nil && left != nil {
		err = fmt.Errorf("VM %d of %s is still there", left.ID, l.Node)
	}
	if err != nil || l.vm == nil {
		return err
	}
	for _, k := range kept {
		l.notes = append(l.notes, k.Stays())
	}
	disks, unseen := l.proxmox.NotRemoved(ctx, []hypervisor.VM{*l.vm}, kept)
	if unseen != "" {
		l.notes = append(l.notes, unseen)
	}
	for _, disk := range disks {
		l.notes = append(l.notes, disk.Error())
	}
	return nil
}

// forget removes the Node of Kubernetes, and with it what is left of its pods.
func (l *leaving) forget(ctx context.Context) error {
	return l.Step("node "+l.Node, func(func(string)) (bool, error) {
		if l.node() == nil {
			return false, nil
		}
		return true, l.api.Forget(ctx, l.node())
	})
}
