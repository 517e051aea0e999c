package postrender

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// lookupTimeout bounds a look at the cluster; Helm itself would wait for its post-renderer without end.
const lookupTimeout = 30 * time.Second

// InCluster looks Secrets up in a cluster.
func InCluster(config *rest.Config) Lookup {
	return func(ctx context.Context, namespace, name string) (map[string][]byte, error) {
		client, err := dynamic.NewForConfig(config)
		if err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
		defer cancel()
		found, err := client.Resource(corev1.SchemeGroupVersion.WithResource("secrets")).Namespace(namespace).Get(ctx, name, metav1.GetOptions{})
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
}
