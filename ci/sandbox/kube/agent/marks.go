//go:build linux

package agent

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Annotations by which Talos remembers what of a Node is its own (siderolabs/talos, pkg/machinery/constants).
const (
	ownedLabels = "talos.dev/owned-labels"
	ownedTaints = "talos.dev/owned-taints"
)

// mark gives a registered Node its labels and taints. It is false when the power went first.
func (a *Agent) mark(n *node) bool {
	return a.persist(n.context, "label", n, func(ctx context.Context, c *api) error {
		is, err := c.client.CoreV1().Nodes().Get(ctx, n.Name, metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil // deleted on purpose, or to be registered
		}
		if err != nil {
			return err
		}
		wanted := is.DeepCopy()
		a.markObject(wanted, n)
		if equality.Semantic.DeepEqual(is, wanted) {
			return nil
		}
		_, err = c.client.CoreV1().Nodes().Update(ctx, wanted, metav1.UpdateOptions{})
		return err
	})
}

// markObject sets the labels and taints that the node has by its configuration, and takes away those that it had by an earlier one, as
// internal/app/machined/pkg/controllers/k8s/node_apply.go of siderolabs/talos does.
func (a *Agent) markObject(object *corev1.Node, n *node) {
	a.mu.Lock()
	labels, taints := n.Labels, n.Taints
	a.mu.Unlock()
	if object.Labels == nil {
		object.Labels = map[string]string{}
	}
	for _, key := range owned(object, ownedLabels) {
		delete(object.Labels, key)
	}
	maps.Copy(object.Labels, labels)
	mine := slices.Concat(owned(object, ownedTaints), slices.Collect(maps.Keys(taints)))
	object.Spec.Taints = slices.DeleteFunc(object.Spec.Taints, func(taint corev1.Taint) bool { return slices.Contains(mine, taint.Key) })
	for _, key := range slices.Sorted(maps.Keys(taints)) {
		value, effect, _ := strings.Cut(taints[key], ":")
		object.Spec.Taints = append(object.Spec.Taints, corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)})
	}
	own(object, ownedLabels, labels)
	own(object, ownedTaints, taints)
}

func owned(object *corev1.Node, annotation string) []string {
	var keys []string
	_ = json.Unmarshal([]byte(object.Annotations[annotation]), &keys) // none, where there is none
	return keys
}

func own(object *corev1.Node, annotation string, what map[string]string) {
	if len(what) == 0 {
		delete(object.Annotations, annotation)
		return
	}
	text, _ := json.Marshal(slices.Sorted(maps.Keys(what))) // texts can always be written
	if object.Annotations == nil {
		object.Annotations = map[string]string{}
	}
	object.Annotations[annotation] = string(text)
}
