package postrender

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"tazlab.net/castle/ci/cluster/kube"
)

// Cluster is the one that a release goes to.
type Cluster interface {
	// Secret reads the data of a Secret; nil where there is no such Secret.
	Secret(ctx context.Context, namespace, name string) (map[string][]byte, error)
	// Define creates the CRDs that are not there yet, leaves the others as they are, and returns when all are served, or when it has waited for
	// long enough: the layer's gate says what becomes of them.
	Define(ctx context.Context, definitions []object) error
}

// servedTimeout bounds the wait for CRDs: Helm itself would wait for its post-renderer without end.
const servedTimeout = time.Minute

// InCluster is a real one.
func InCluster(client *kube.Client) Cluster { return cluster{client} }

type cluster struct{ client *kube.Client }

func (c cluster) Secret(ctx context.Context, namespace, name string) (map[string][]byte, error) {
	var found *unstructured.Unstructured
	err := c.client.AskFor(ctx, kube.AwayAtMost, func(ctx context.Context) (err error) {
		found, err = c.client.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	})
	if errors.IsNotFound(err) {
		return nil, nil
	}
	var secret corev1.Secret
	if err == nil {
		err = runtime.DefaultUnstructuredConverter.FromUnstructured(found.Object, &secret)
	}
	if err != nil {
		return nil, fmt.Errorf("read the Secret %s/%s: %w", namespace, name, err)
	}
	return secret.Data, nil
}

func (c cluster) Define(ctx context.Context, definitions []object) error {
	var names []string
	for _, definition := range definitions {
		names = append(names, definition.GetName())
		// As Helm's own field manager, which changes them from here on.
		err := c.client.AskFor(ctx, kube.AwayAtMost, func(ctx context.Context) error {
			_, err := c.client.Resource(kube.CRDs).Create(ctx, definition, metav1.CreateOptions{FieldManager: "helm"})
			return err
		})
		if err != nil && !errors.IsAlreadyExists(err) {
			return fmt.Errorf("create the CRD %s: %w", definition.GetName(), err)
		}
	}
	wait, cancel := context.WithTimeout(ctx, servedTimeout)
	defer cancel()
	if err := c.client.Definitions(names...)(wait, func(string) {}); err != nil && wait.Err() == nil {
		return err
	}
	return ctx.Err()
}
