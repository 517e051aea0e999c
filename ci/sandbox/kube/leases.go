//go:build linux

package kube

import (
	"context"
	"errors"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// leaseTime is how long dropping the leases may keep a power-on.
const leaseTime = 3 * time.Second

// DropLeases removes what controllers in pods held in a former life of the world, which a service of an engine is killed
// out of. They would wait until it had run out, which for Flux is 15 s of every call.
func (p *Plane) DropLeases(ctx context.Context) error {
	admin := p.Admin()
	if admin == nil {
		return nil
	}
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, leaseTime)
	defer cancel()
	leases, err := client.CoordinationV1().Leases(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, lease := range leases.Items {
		if lease.Namespace != corev1.NamespaceNodeLease && lease.Namespace != metav1.NamespaceSystem {
			err = errors.Join(err, client.CoordinationV1().Leases(lease.Namespace).Delete(ctx, lease.Name, metav1.DeleteOptions{}))
		}
	}
	return err
}
