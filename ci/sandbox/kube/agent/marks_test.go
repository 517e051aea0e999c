//go:build linux

package agent

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestANodeKeepsWhatIsNotTalossAndLosesWhatItsConfigurationHasNoMore(t *testing.T) {
	const role, excluded = "node-role.kubernetes.io/control-plane", "node.kubernetes.io/exclude-from-external-load-balancers"
	a := &Agent{}
	object := &corev1.Node{}
	n := &node{Node: Node{Labels: map[string]string{role: "", excluded: ""}, Taints: map[string]string{role: ":NoSchedule"}}}
	a.markObject(object, n)
	if want := []corev1.Taint{{Key: role, Effect: corev1.TaintEffectNoSchedule}}; !reflect.DeepEqual(object.Spec.Taints, want) {
		t.Errorf("tainted %v", object.Spec.Taints)
	}

	object.Labels["somebody/else"] = "x"
	foreign := corev1.Taint{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}
	object.Spec.Taints = append(object.Spec.Taints, foreign)
	n.Labels, n.Taints = map[string]string{role: ""}, nil
	a.markObject(object, n)
	if want := map[string]string{role: "", "somebody/else": "x"}; !reflect.DeepEqual(object.Labels, want) {
		t.Errorf("labels %v", object.Labels)
	}
	if !reflect.DeepEqual(object.Spec.Taints, []corev1.Taint{foreign}) {
		t.Errorf("tainted %v", object.Spec.Taints)
	}
}
