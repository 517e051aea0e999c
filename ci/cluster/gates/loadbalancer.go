package gates

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"tazlab.net/castle/ci/cluster/kube"
)

// loadBalancer waits until a Service of type LoadBalancer gets an address of the pool, or MetalLB answers that others hold all of
// them. The Service is castle's own, has no endpoints, and is removed whatever the outcome is; a dry run would show nothing, because
// MetalLB acts on what is stored.
type loadBalancer struct {
	Kube *kube.Client
	// Pool is the IPAddressPool that the address is asked from, Ranges what it consists of: "a-b" or a prefix.
	Pool   string
	Ranges []string
}

const proofService = "loadbalancer"

// Wait waits as Waiter says.
func (l loadBalancer) Wait(ctx context.Context, report func(string)) error {
	proof := l.service()
	defer proof.remove(ctx)
	var own types.UID
	err := l.Kube.Poll(250*time.Millisecond).Until(ctx, func(ctx context.Context) kube.Answer {
		service, err := proof.create(ctx)
		if err != nil {
			return kube.Answer{Seen: "cannot create the Service yet: " + kube.Brief(err).Error(), Err: err}
		}
		own = service.GetUID()
		return kube.Answer{Seen: "no address yet", OK: true}
	}, report)
	if err != nil {
		return err
	}
	targets := []kube.Target{
		{Resource: kube.Services, Namespace: proofNamespace, Name: proofService},
		{Resource: addressPools, Namespace: metallbNamespace, Name: l.Pool},
		{Resource: kube.Events, Namespace: proofNamespace},
	}
	return l.Kube.Follow(ctx, targets, func(view kube.View) (string, bool, error) {
		services, pools, events := view[0], view[1], view[2]
		if len(services) == 0 || services[0].GetUID() != own {
			return "", false, fmt.Errorf("somebody removed the Service %s/%s; run it again", proofNamespace, proofService)
		}
		seen, ok := l.hasAddress(services[0])
		if !ok && len(pools) > 0 && refused(events, own) {
			if free, used := counted(pools[0]); free == 0 && used > 0 {
				return fmt.Sprintf("MetalLB answers: all %d addresses of the pool are in use", used), true, nil
			}
		}
		return seen, ok, nil
	}, report)
}

// refused tells whether MetalLB found no address for the Service. Why is not told in words that can be relied on: of an exhausted pool
// they are `["<nil>"] is not allowed in config`. Source: MetalLB v0.15.2, controller/service.go.
func refused(events []*unstructured.Unstructured, service types.UID) bool {
	return slices.ContainsFunc(events, func(event *unstructured.Unstructured) bool {
		about, _, _ := unstructured.NestedString(event.Object, "involvedObject", "uid")
		reason, _, _ := unstructured.NestedString(event.Object, "reason")
		return about == string(service) && reason == "AllocationFailed"
	})
}

func (l loadBalancer) service() proof {
	return proof{kube: l.Kube, resource: kube.Services, name: proofService, annotations: map[string]any{"metallb.io/address-pool": l.Pool}, object: map[string]any{
		"apiVersion": "v1", "kind": "Service",
		"spec": map[string]any{
			"type":                          "LoadBalancer",
			"allocateLoadBalancerNodePorts": false,
			"ports":                         []any{map[string]any{"name": "discard", "port": int64(9), "protocol": "TCP"}},
		},
	}}
}

func (l loadBalancer) hasAddress(service *unstructured.Unstructured) (string, bool) {
	ingress, _, _ := unstructured.NestedSlice(service.Object, "status", "loadBalancer", "ingress")
	for _, entry := range ingress {
		entry, _ := entry.(map[string]any)
		text, _ := entry["ip"].(string)
		address, err := netip.ParseAddr(text)
		if err != nil {
			continue
		}
		if inRanges(address, l.Ranges) {
			return "got " + text, true
		}
		return fmt.Sprintf("got %s, which is not in %s", text, strings.Join(l.Ranges, ", ")), false
	}
	return "no address yet", false
}

// inRanges tells whether an address is in one of the ranges, "first-last" or a prefix, both ends included.
func inRanges(address netip.Addr, ranges []string) bool {
	for _, text := range ranges {
		if prefix, err := netip.ParsePrefix(strings.TrimSpace(text)); err == nil && prefix.Contains(address) {
			return true
		}
		low, high, _ := strings.Cut(text, "-")
		first, err1 := netip.ParseAddr(strings.TrimSpace(low))
		last, err2 := netip.ParseAddr(strings.TrimSpace(high))
		if err1 == nil && err2 == nil && first.Compare(address) <= 0 && address.Compare(last) <= 0 {
			return true
		}
	}
	return false
}
