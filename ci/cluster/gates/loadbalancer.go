package gates

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/layers"
)

// loadBalancer waits until a Service of type LoadBalancer gets an address of the pool and somebody answers there, or MetalLB answers that
// others hold all of them. The Service is castle's own and is removed whatever the outcome is; a dry run would show nothing, because MetalLB
// acts on what is stored. What answers behind it is the cluster's own API, which needs no image and lets nobody in that it would not elsewhere.
//
// An address at which nobody answers is Unproven: that is seen from here alone, where a firewall may stand in between.
type loadBalancer struct {
	Kube *kube.Client
	// Pool is the IPAddressPool that the address is asked from, Ranges what it consists of: "a-b" or a prefix.
	Pool   string
	Ranges []string
	// Servers are the control planes.
	Servers []config.Node
	// Silence is how long nobody may answer while speakers run on all nodes that they shall run on.
	Silence time.Duration
}

const (
	proofService = "loadbalancer"
	// answersWithin is for how long MetalLB may take to announce an address: its speakers find each other within seconds, and switches
	// learn of it by the announcement itself.
	answersWithin = 20 * time.Second
)

// Wait waits as Waiter says.
func (l loadBalancer) Wait(ctx context.Context, report func(string)) error {
	proof, endpoints := l.service(), l.endpoints()
	defer proof.remove(ctx)
	defer endpoints.remove(ctx)
	var own types.UID
	err := l.Kube.Poll(250*time.Millisecond).Until(ctx, func(ctx context.Context) kube.Answer {
		service, err := proof.create(ctx)
		if err == nil {
			_, err = endpoints.create(ctx)
		}
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
		{Resource: addressPools, Namespace: layers.NetworkingNamespace, Name: l.Pool},
		{Resource: kube.Events, Namespace: proofNamespace},
	}
	var given netip.Addr
	err = l.Kube.Follow(ctx, targets, func(view kube.View) (seen string, ok bool, err error) {
		services, pools, events := view[0], view[1], view[2]
		if len(services) == 0 || services[0].GetUID() != own {
			return "", false, fmt.Errorf("somebody removed the Service %s/%s; run it again", proofNamespace, proofService)
		}
		given, seen = l.addressOf(services[0])
		if !given.IsValid() && len(pools) > 0 && refused(events, own) {
			if free, used := counted(pools[0]); free == 0 && used > 0 {
				return fmt.Sprintf("MetalLB answers: all %d addresses of the pool are in use", used), true, nil
			}
		}
		return seen, given.IsValid(), nil
	}, report)
	if err != nil || !given.IsValid() {
		return err
	}
	return l.answers(ctx, given, report)
}

// answers waits until the API answers at the address that the Service has.
func (l loadBalancer) answers(ctx context.Context, address netip.Addr, report func(string)) error {
	client, err := l.Kube.ForwardedHTTPClient()
	if err != nil {
		return err
	}
	var silent string
	since := time.Now()
	err = l.Kube.Poll(250*time.Millisecond).Until(ctx, func(ctx context.Context) kube.Answer {
		// Whatever the API says there, somebody answers.
		why, err := get(ctx, client, apiAt(address, "/version"))
		if err == nil {
			return kube.Answer{Seen: "got " + address.String() + ", which answers", OK: true}
		}
		seen := fmt.Sprintf("got %s, and nobody answers there: %s", address, why)
		if others := l.missingSpeakers(ctx); others != "" {
			since = time.Now()
			return kube.Answer{Seen: seen + "; " + others}
		}
		if time.Since(since) >= l.Silence {
			silent = seen
		}
		return kube.Answer{Seen: seen, OK: silent != ""}
	}, report)
	if err == nil && silent != "" {
		return &Unproven{silent}
	}
	return err
}

// missingSpeakers says which of MetalLB's speakers are still to come. Where they go by another name, nothing is known of them.
func (l loadBalancer) missingSpeakers(ctx context.Context) string {
	speakers, err := l.Kube.Resource(kube.DaemonSets).Namespace(layers.NetworkingNamespace).Get(ctx, "metallb-speaker", metav1.GetOptions{})
	if err != nil {
		return ""
	}
	if seen, all := kube.OnEveryNode(speakers); !all {
		return "MetalLB's speakers: " + seen
	}
	return ""
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
			"ports":                         []any{map[string]any{"name": "https", "port": int64(apiPort), "protocol": "TCP"}},
		},
	}}
}

// endpoints lead from the Service, which selects no pods, to the control planes. MetalLB announces no address that leads nowhere
// (MetalLB v0.15.2, speaker/layer2_controller.go).
func (l loadBalancer) endpoints() proof {
	list := make([]any, len(l.Servers))
	for i, server := range l.Servers {
		list[i] = map[string]any{"addresses": []any{server.Address.String()}, "conditions": map[string]any{"ready": true}}
	}
	return proof{kube: l.Kube, resource: kube.EndpointSlices, name: proofService, labels: map[string]any{discoveryv1.LabelServiceName: proofService}, object: map[string]any{
		"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4", "endpoints": list,
		"ports": []any{map[string]any{"name": "https", "port": int64(apiPort), "protocol": "TCP"}},
	}}
}

// addressOf is the address of the pool that the Service was given, and what was seen. Not valid: none.
func (l loadBalancer) addressOf(service *unstructured.Unstructured) (netip.Addr, string) {
	ingress, _, _ := unstructured.NestedSlice(service.Object, "status", "loadBalancer", "ingress")
	for _, entry := range ingress {
		entry, _ := entry.(map[string]any)
		text, _ := entry["ip"].(string)
		address, err := netip.ParseAddr(text)
		if err != nil {
			continue
		}
		if inRanges(address, l.Ranges) {
			return address, "got " + text
		}
		return netip.Addr{}, fmt.Sprintf("got %s, which is not in %s", text, strings.Join(l.Ranges, ", "))
	}
	return netip.Addr{}, "no address yet"
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
