//go:build linux

package kube

import (
	"context"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const publishTimeout = 30 * time.Second

// publish writes what control planes write about themselves: where the Service "kubernetes" leads. It goes on in the
// background: the API server makes the Service itself, a moment after it is ready.
func (p *Plane) publish() {
	if p.control == nil {
		return
	}
	control := p.control
	go func() {
		p.publishing.Lock() // the last call writes last
		defer p.publishing.Unlock()
		ctx, cancel := context.WithTimeout(context.Background(), publishTimeout)
		defer cancel()
		for {
			err := publishEndpoints(ctx, control.client, p.addresses())
			if err == nil {
				return
			}
			select {
			case <-control.stopping:
				return
			case <-ctx.Done():
				p.log().Error("the control planes' endpoints cannot be published", "error", err)
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
}

// addresses are those of the control planes that run.
func (p *Plane) addresses() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var addresses []string
	for name := range p.doors {
		addresses = append(addresses, p.known[name].String())
	}
	slices.Sort(addresses)
	return addresses
}

func publishEndpoints(ctx context.Context, client kubernetes.Interface, addresses []string) error {
	name, port, protocol, ready := "https", int32(kubernetesPort), corev1.ProtocolTCP, true
	wanted := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: "kubernetes", Labels: map[string]string{discoveryv1.LabelServiceName: "kubernetes"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Port: &port, Protocol: &protocol}},
	}
	for _, address := range addresses {
		wanted.Endpoints = append(wanted.Endpoints, discoveryv1.Endpoint{
			Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		})
	}
	slices := client.DiscoveryV1().EndpointSlices(corev1.NamespaceDefault)
	_, err := slices.Create(ctx, wanted, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		_, err = slices.Update(ctx, wanted, metav1.UpdateOptions{})
	}
	return err
}
