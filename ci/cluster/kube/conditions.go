package kube

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Present passes every object.
func Present(*unstructured.Unstructured) (string, bool) { return "exists", true }

// NodeReady tells whether a Node's kubelet reports it fit for pods; none is not.
func NodeReady(node *corev1.Node) bool {
	return node != nil && slices.ContainsFunc(node.Status.Conditions, func(condition corev1.NodeCondition) bool {
		return condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue
	})
}

// RefusesPods tells whether a Node takes none but those that tolerate it, as a control plane beside workers. That it is not Ready or
// cordoned, which Kubernetes says by taints of its own, is another matter.
func RefusesPods(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Spec.Taints, func(taint corev1.Taint) bool {
		return taint.Effect != corev1.TaintEffectPreferNoSchedule && !strings.HasPrefix(taint.Key, "node.kubernetes.io/")
	})
}

// TakesPods tells whether the scheduler may choose the Node for a pod like any other.
func TakesPods(node *corev1.Node) bool {
	return NodeReady(node) && !node.Spec.Unschedulable && !RefusesPods(node)
}

// current asks kstatus: the newest generation was observed and is rolled out.
func current(object *unstructured.Unstructured) (string, bool) {
	result, err := status.Compute(object)
	if err != nil {
		return err.Error(), false
	}
	return result.Message, result.Status == status.CurrentStatus
}

// Available tests a Deployment, by kstatus: its newest generation is observed, all its pods are of it and available, and none is
// left of an older one. Pods that are on their way out are not waited for.
func Available(deployment *unstructured.Unstructured) (string, bool) {
	if seen, ok := current(deployment); !ok {
		// kstatus leaves out why there are no pods, as a quota or the standards for pods refuse them.
		if refused := conditionOf(deployment, "ReplicaFailure"); refused["status"] == "True" {
			seen = fmt.Sprintf("%s; %v: %v", seen, refused["reason"], refused["message"])
		}
		return seen, false
	}
	wanted, found, _ := unstructured.NestedInt64(deployment.Object, "spec", "replicas")
	if !found {
		wanted = 1 // the API's default
	}
	if wanted == 0 {
		return "it is scaled to 0", false
	}
	return fmt.Sprintf("%d of %d available", wanted, wanted), true
}

// OnEveryNode tests a DaemonSet: available wherever it shall run, which is at least one node.
func OnEveryNode(daemonSet *unstructured.Unstructured) (string, bool) {
	seen, ok := current(daemonSet)
	desired, _, _ := unstructured.NestedInt64(daemonSet.Object, "status", "desiredNumberScheduled")
	if !ok {
		return seen, false
	}
	if desired == 0 {
		return "scheduled on no node yet", false
	}
	return fmt.Sprintf("available on %d nodes", desired), true
}

// Established tests a CRD: its kind can be used.
func Established(definition *unstructured.Unstructured) (string, bool) {
	return HasCondition(definition, "Established")
}

// Ready tests an object of a controller that sets a Ready condition. Where the controller records what it has
// observed, this is the newest generation. An object without conditions is not ready: its controller has not seen it.
func Ready(object *unstructured.Unstructured) (string, bool) {
	seen, is := HasCondition(object, "Ready")
	if behind, ok := current(object); is && !ok {
		return behind, false
	}
	return seen, is
}

// HasCondition looks for a condition with status True, and says else what its controller says.
func HasCondition(object *unstructured.Unstructured, kind string) (string, bool) {
	condition := conditionOf(object, kind)
	switch {
	case condition == nil:
		return "not " + kind + " yet", false
	case condition["status"] == "True":
		return kind, true
	}
	seen := fmt.Sprintf("%s is %v", kind, condition["status"])
	for _, field := range []string{"reason", "message"} {
		if text, _ := condition[field].(string); text != "" {
			seen += ": " + text
		}
	}
	return seen, false
}

// Reason is why a condition has the status that it has, in its controller's word; empty where there is no such condition.
func Reason(object *unstructured.Unstructured, kind string) string {
	reason, _ := conditionOf(object, kind)["reason"].(string)
	return reason
}

// conditionOf finds an object's condition, nil when it has none of the kind.
func conditionOf(object *unstructured.Unstructured, kind string) map[string]any {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, condition := range conditions {
		if condition, ok := condition.(map[string]any); ok && condition["type"] == kind {
			return condition
		}
	}
	return nil
}
