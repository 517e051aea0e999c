package restart

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/layers/state"
)

// Pods are drained where another node takes them, and end with their node where none does.
func TestWhatIsAwayWithANodeIsKnown(t *testing.T) {
	ready := corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}
	named := func(name string, change func(*corev1.Node)) corev1.Node {
		node := corev1.Node{Status: ready}
		node.Name = name
		change(&node)
		return node
	}
	plain := func(*corev1.Node) {}
	tainted := func(node *corev1.Node) {
		node.Spec.Taints = []corev1.Taint{{Key: "node-role.kubernetes.io/control-plane", Effect: corev1.TaintEffectNoSchedule}}
	}
	cordoned := func(node *corev1.Node) {
		node.Spec.Unschedulable = true
		node.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}}
	}
	off := func(node *corev1.Node) { node.Status = corev1.NodeStatus{} }
	control, worker := state.VM{Role: config.RoleControlPlane}, state.VM{Role: config.RoleWorker}
	for name, c := range map[string]struct {
		down  string
		nodes []corev1.Node
		known state.VMs
		want  without
	}{
		"the only node": {"cp", []corev1.Node{named("cp", plain)}, state.VMs{"cp": control}, without{pods: true, api: true}},
		"the only node, cordoned by an earlier run": {"cp", []corev1.Node{named("cp", cordoned)}, state.VMs{"cp": control}, without{pods: true, api: true}},
		"one of three control planes without workers": {"a", []corev1.Node{named("a", plain), named("b", plain), named("c", plain)},
			state.VMs{"a": control, "b": control, "c": control}, without{}},
		"the only control plane, beside a worker":                   {"cp", []corev1.Node{named("cp", tainted), named("w", plain)}, state.VMs{"cp": control, "w": worker}, without{api: true}},
		"a control plane that takes no pods, while no worker is on": {"cp", []corev1.Node{named("cp", tainted), named("w", off)}, state.VMs{"cp": control, "w": worker}, without{api: true}},
		"the only worker":                      {"w", []corev1.Node{named("cp", tainted), named("w", plain)}, state.VMs{"cp": control, "w": worker}, without{pods: true}},
		"the only worker that is not cordoned": {"w", []corev1.Node{named("x", cordoned), named("w", plain)}, state.VMs{"x": worker, "w": worker}, without{pods: true}},
		"the only worker that is on":           {"w", []corev1.Node{named("x", off), named("w", plain)}, state.VMs{"x": worker, "w": worker}, without{pods: true}},
		"one of two workers":                   {"w", []corev1.Node{named("x", plain), named("w", plain)}, state.VMs{"x": worker, "w": worker}, without{}},
	} {
		got := withoutNode(c.down, c.nodes, c.known)
		if got != c.want {
			t.Errorf("%s: %+v", name, got)
		}
		texts := 0
		for _, away := range []bool{c.want.pods, c.want.api} {
			if away {
				texts++
			}
		}
		if len(got.away()) != texts {
			t.Errorf("%s: %v", name, got.away())
		}
	}
}
