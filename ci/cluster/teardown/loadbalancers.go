package teardown

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tazlab.net/castle/ci/cluster/kube"
)

// RemoveLoadBalancers removes the Services that have something outside of the cluster lead to them, while the controller still runs that takes it
// back.
func (c *Cluster) RemoveLoadBalancers(ctx context.Context, tell func(string)) (did bool, err error) {
	var services *corev1.ServiceList
	err = c.client.Ask(ctx, func(ctx context.Context) (err error) {
		services, err = c.typed.CoreV1().Services("").List(ctx, metav1.ListOptions{})
		return err
	})
	if err != nil {
		return false, fmt.Errorf("list Services: %w", kube.Brief(err))
	}
	var balanced []condemned
	for _, service := range services.Items {
		if service.Spec.Type == corev1.ServiceTypeLoadBalancer {
			balanced = append(balanced, condemned{kube.Services, service.Namespace, service.Name, service.UID})
		}
	}
	return len(balanced) > 0, c.remove(ctx, balanced, tell)
}
