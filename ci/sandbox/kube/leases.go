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

// leaseTime is how long giving up the leases may keep a shutdown.
const leaseTime = 3 * time.Second

// GiveUpLeases does, before an orderly Close, for the controllers in pods what they do themselves when they are told to end: without it their next
// life waits until the leases of this one have run out, which for Flux is 15 s. A power cut leaves them.
func (p *Plane) GiveUpLeases() error {
	admin := p.Admin()
	if admin == nil {
		return nil
	}
	client, err := kubernetes.NewForConfig(admin)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), leaseTime)
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
