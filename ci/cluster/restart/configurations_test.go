package restart

import (
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"tazlab.net/castle/ci/cluster/talos"
)

// A change may be what mends a node: the cluster is not well before it.
func TestASickNodesTurnComesFirstAndWaitsForNothing(t *testing.T) {
	node := func(name string, ready corev1.ConditionStatus) corev1.Node {
		node := corev1.Node{Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}}}
		node.Name = name
		return node
	}
	nodes := []corev1.Node{node("a", corev1.ConditionTrue), node("b", corev1.ConditionFalse), node("c", corev1.ConditionTrue), node("d", corev1.ConditionUnknown)}
	changes := []talos.Change{{Node: "a"}, {Node: "b", Restart: true}, {Node: "c"}, {Node: "d"}, {Node: "nobody"}}
	var order, sick []string
	for _, turn := range inTurn(changes, nodes) {
		order = append(order, turn.Node)
		if turn.sick {
			sick = append(sick, turn.Node)
		}
	}
	if !slices.Equal(order, []string{"b", "d", "a", "c"}) || !slices.Equal(sick, []string{"b"}) {
		t.Errorf("their order is %v, and %v wait for nothing", order, sick)
	}
}
