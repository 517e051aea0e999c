package gates

import (
	"context"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tazlab.net/castle/ci/cluster/kube"
)

// proofNamespace is the namespace of what castle creates to see whether it works. It stays, empty: a namespace takes
// seconds to go, and the next run would have to wait for that.
const proofNamespace = "castle-proof"

// proof is an object in that namespace.
type proof struct {
	kube     *kube.Client
	resource schema.GroupVersionResource
	object   map[string]any // with apiVersion, kind and spec
	name     string
	// labels and annotations of the object, beside those that say whose it is. May be nil.
	labels, annotations map[string]any
}

var proofLabels = map[string]any{"app.kubernetes.io/managed-by": "castle"}

// create creates the object anew: one that a killed run left behind proves nothing about now. While that one is still going, it fails.
func (p proof) create(ctx context.Context) (*unstructured.Unstructured, error) {
	namespace := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": proofNamespace, "labels": proofLabels},
	}}
	_, err := p.kube.Resource(kube.Namespaces).Create(ctx, namespace, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	if err := p.delete(ctx); err != nil {
		return nil, err
	}
	labels := maps.Clone(proofLabels)
	maps.Copy(labels, p.labels)
	metadata := map[string]any{"name": p.name, "labels": labels}
	if p.annotations != nil {
		metadata["annotations"] = p.annotations
	}
	object := &unstructured.Unstructured{Object: maps.Clone(p.object)}
	object.Object["metadata"] = metadata
	return p.kube.Resource(p.resource).Namespace(proofNamespace).Create(ctx, object, metav1.CreateOptions{})
}

func (p proof) delete(ctx context.Context) error {
	err := p.kube.Resource(p.resource).Namespace(proofNamespace).Delete(ctx, p.name, metav1.DeleteOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// remove removes the object whatever became of the wait; where that fails, the next run removes it.
func (p proof) remove(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), kube.RequestTimeout)
	defer cancel()
	_ = p.delete(ctx)
}
