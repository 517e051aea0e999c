package removenode

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	tfjson "github.com/hashicorp/terraform-json"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/hypervisor"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/talos"
)

// fake is blue, with what remove-node sees and changes of it.
type fake struct {
	described *config.Cluster
	did       []string

	known   state.VMs
	vms     map[string]*hypervisor.VM
	nodes   []corev1.Node
	members []string // of etcd
	status  map[string]string

	notOurs     int // which look at the machines finds one that is somebody else's, from 1
	looks       int
	silentAPIs  bool // of the control planes
	orphans     []string
	planned     []string // addresses that OpenTofu would change beside the node's
	neverOff    bool
	staysInEtcd bool

	interruptAt int
	after       bool
	interrupt   context.CancelFunc
	changes     int
}

const leaver = "blue-cp-3"

func newFake(t *testing.T) *fake {
	t.Helper()
	described, err := config.Load("../../../terragrunt/live/blue")
	if err != nil {
		t.Fatal(err)
	}
	f := &fake{described: described, known: state.VMs{}, vms: map[string]*hypervisor.VM{}, status: map[string]string{}}
	for _, node := range described.Nodes {
		f.known[node.Name] = state.VM{ID: node.VMID, Host: node.Host, Role: node.Role, Address: node.Address}
		f.vms[node.Name] = &hypervisor.VM{ID: node.VMID, Name: node.Name, Status: hypervisor.Running, Ours: true}
		f.status[node.Name] = talos.IsConfigured
		one := corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
		one.Name = node.Name
		f.nodes = append(f.nodes, one)
		if node.Role == config.RoleControlPlane {
			f.members = append(f.members, node.Name)
		}
	}
	return f
}

// leave is a whole call.
func (f *fake) leave(ctx context.Context, node string) (*leaving, error) {
	l, err := look(ctx, f, f.described, Options{Node: node, DrainTimeout: time.Minute})
	if err != nil {
		return l, err
	}
	if err := l.check(ctx); err != nil {
		return l, err
	}
	return l, l.leave(ctx)
}

func (f *fake) change(ctx context.Context, what string, change func()) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	f.changes++
	interrupted := f.changes == f.interruptAt
	if !interrupted || f.after {
		change()
		f.did = append(f.did, what)
	}
	if interrupted {
		f.interrupt()
	}
	return ctx.Err()
}

func (f *fake) Step(_ string, do func(func(string)) (bool, error)) error {
	_, err := do(func(string) {})
	return err
}
func (f *fake) Failure(_ context.Context, err error) error { return err }
func (f *fake) Proxmox() proxmox                           { return f }
func (f *fake) Machines(state.VMs) (machines, error)       { return f, nil }
func (f *fake) API() (api, error)                          { return f, nil }
func (f *fake) Close()                                     {}

func (f *fake) OwnMachines(context.Context) (state.VMs, error) {
	if f.looks++; f.looks == f.notOurs {
		return nil, errors.New("VM 423 has no tag")
	}
	return f.known, nil
}

func (f *fake) OthersDisksStay(context.Context, state.VMs, []string) error { return nil }

func (f *fake) Plan(_ context.Context, node run.OneNode) (*tfjson.Plan, error) {
	plan := &tfjson.Plan{ResourceChanges: []*tfjson.ResourceChange{{Address: "module.node", Change: &tfjson.Change{Actions: tfjson.Actions{tfjson.ActionNoop}}}}}
	for _, address := range f.planned {
		plan.ResourceChanges = append(plan.ResourceChanges, &tfjson.ResourceChange{Address: address, Change: &tfjson.Change{Actions: tfjson.Actions{tfjson.ActionUpdate}}})
	}
	return plan, nil
}

func (f *fake) ApplyNode(ctx context.Context, node run.OneNode) error {
	return f.change(ctx, fmt.Sprintf("VM %d", node.ID), func() {
		delete(f.vms, node.Name)
		delete(f.known, node.Name)
		sick(f, node.Name)
	})
}

func (f *fake) Own(_ context.Context, node string) (*hypervisor.VM, error) {
	vm, has := f.vms[node]
	if !has {
		return nil, nil
	}
	seen := *vm
	return &seen, nil
}

func (f *fake) AwaitOff(_ context.Context, node string, _ time.Duration) (bool, error) {
	if f.neverOff {
		return false, nil
	}
	f.vms[node].Status, f.status[node] = "stopped", "silent"
	return true, nil
}

func (f *fake) Unreferenced(context.Context, []hypervisor.VM) ([]hypervisor.Leftover, error) {
	return nil, nil
}

func (f *fake) NotRemoved(context.Context, []hypervisor.VM, []hypervisor.Leftover) ([]error, string) {
	return []error{errors.New("a volume of it is there")}, ""
}

func (f *fake) Status(context.Context) (all []talos.NodeStatus) {
	for name := range f.known {
		all = append(all, talos.NodeStatus{Name: name, State: f.status[name]})
	}
	return all
}

func (f *fake) StatusOf(_ context.Context, node string) (talos.NodeStatus, error) {
	return talos.NodeStatus{Name: node, State: f.status[node]}, nil
}

func (f *fake) EtcdQuorum(context.Context) (talos.Quorum, error) {
	q := talos.Quorum{Wanted: len(f.members), Leader: "blue-cp-1"}
	for i, name := range f.members {
		q.Members = append(q.Members, talos.Member{ID: uint64(i + 1), Name: name, Node: name, Healthy: f.status[name] == talos.IsConfigured})
	}
	return q, nil
}

func (f *fake) out(node string) func() {
	return func() {
		if !f.staysInEtcd {
			f.members = slices.DeleteFunc(f.members, func(name string) bool { return name == node })
		}
	}
}

func (f *fake) LeaveEtcd(ctx context.Context, node string) error {
	return f.change(ctx, "leaves etcd", f.out(node))
}

func (f *fake) RemoveMember(ctx context.Context, member talos.Member) error {
	return f.change(ctx, "is taken out of etcd", f.out(member.Node))
}

func (f *fake) Reset(ctx context.Context, node string) error {
	return f.change(ctx, "reset", func() {
		if !f.neverOff {
			f.vms[node].Status, f.status[node] = "stopped", "silent"
			sick(f, node)
		}
	})
}

func (f *fake) GiveBack(ctx context.Context, node string, _ bool) error {
	return f.change(ctx, "given back", func() { f.status[node] = talos.InMaintenance })
}

func (f *fake) AwaitMaintenance(context.Context, string, time.Duration, func(string)) error {
	return nil
}

func (f *fake) Nodes(context.Context) ([]corev1.Node, error) { return slices.Clone(f.nodes), nil }

func (f *fake) Serves(context.Context, string) error {
	if f.silentAPIs {
		return errors.New("connection refused")
	}
	return nil
}

func (f *fake) Orphans(context.Context, string) ([]string, error) { return f.orphans, nil }
func (f *fake) Replicas(context.Context) ([]unstructured.Unstructured, error) {
	return nil, nil
}

func (f *fake) Cordon(ctx context.Context, _ string) error {
	return f.change(ctx, "cordon", func() {})
}

func (f *fake) Drain(ctx context.Context, _ string, _ time.Duration, _ func(string)) error {
	return f.change(ctx, "drain", func() {})
}

func (f *fake) Forget(ctx context.Context, node *corev1.Node) error {
	return f.change(ctx, "node", func() {
		f.nodes = slices.DeleteFunc(f.nodes, func(one corev1.Node) bool { return one.Name == node.Name })
	})
}
