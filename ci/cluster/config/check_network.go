package config

import (
	"fmt"
	"net/netip"
	"strings"
)

// smallest is the length of the smallest subnet that holds a cluster: 16 addresses.
const smallest = 28

func (k *checker) network() {
	n := k.c.Network
	if k.Has("network.subnet") && n.Subnet.Bits() > smallest {
		k.Mistake("network.subnet", "%s is too small for nodes, virtual IP and pool; use a /%d or a larger one", n.Subnet, smallest)
	}
	k.inSubnet("network.gateway", n.Gateway)
	if k.Has("network.dns") && len(n.DNS) == 0 {
		k.empty("network.dns")
	}
	seen := map[netip.Addr]bool{}
	for i, a := range n.DNS {
		path := fmt.Sprintf("network.dns[%d]", i)
		if k.Has(path) && seen[a] {
			k.Mistake(path, "%s stands in the list already; remove it", a)
		}
		seen[a] = true
	}
	if k.inSubnet("endpoint", k.c.Endpoint) {
		k.alone("endpoint", k.c.Endpoint, "the virtual IP (endpoint)")
	}
	for i, node := range k.c.Nodes {
		path := fmt.Sprintf("nodes[%d].address", i)
		if k.inSubnet(path, node.Address) {
			k.alone(path, node.Address, nodeLabel(i, node))
		}
	}
}

// inSubnet checks that an address is one of the subnet's that a host may have.
func (k *checker) inSubnet(path string, a netip.Addr) bool {
	if !k.Has(path) || !k.Has("network.subnet") {
		return k.Has(path)
	}
	subnet := k.c.Network.Subnet
	switch {
	case !subnet.Contains(a):
		fix := "; did you mean " + moved(a, subnet).String() + "?"
		proposal := moved(a, subnet)
		for _, u := range k.uses() {
			if u.address == proposal {
				fix = "; write one of its addresses" + k.free(proposal)
			}
		}
		if proposal == subnet.Addr() || proposal == lastAddress(subnet) {
			fix = "; write one of its addresses" + k.free(subnet.Addr())
		}
		k.Mistake(path, "%s is outside %s%s", a, subnet, fix)
	case a == subnet.Addr():
		k.Mistake(path, "%s is the network address of %s; use another one%s", a, subnet, k.free(a))
	case a == lastAddress(subnet):
		k.Mistake(path, "%s is the broadcast address of %s; use another one%s", a, subnet, k.free(subnet.Addr()))
	default:
		return true
	}
	return false
}

// alone checks that nothing named before owner uses the address: of two that collide, the later one is reported.
func (k *checker) alone(path string, a netip.Addr, owner string) {
	for _, u := range k.uses() {
		if u.owner == owner {
			return
		}
		if u.address == a {
			k.Mistake(path, "%s belongs to %s already; use a free one%s", a, u.owner, k.free(a))
			return
		}
	}
}

func (k *checker) pool() {
	if !k.Has("loadBalancer.pool") {
		return
	}
	if len(k.c.LoadBalancer.Pool) == 0 {
		k.empty("loadBalancer.pool")
	}
	spans := make([]span, len(k.c.LoadBalancer.Pool))
	for i, text := range k.c.LoadBalancer.Pool {
		path := fmt.Sprintf("loadBalancer.pool[%d]", i)
		s, problem := readPool(text)
		if problem != "" {
			k.Mistake(path, "%s", problem)
			continue
		}
		spans[i] = s
		if !k.poolInSubnet(path, text, s) {
			continue
		}
		var inside []string
		for _, u := range k.uses() {
			if s.contains(u.address) {
				inside = append(inside, fmt.Sprintf("%s, which belongs to %s", u.address, u.owner))
			}
		}
		if len(inside) > 0 {
			k.Mistake(path, "%s contains %s; choose a range that only MetalLB uses",
				text, strings.Join(inside, "; "))
		}
		for j, other := range spans[:i] {
			if other.first.IsValid() && s.overlaps(other) {
				k.Mistake(path, "%s overlaps loadBalancer.pool[%d], %s; keep one of them", text, j, k.c.LoadBalancer.Pool[j])
			}
		}
	}
}

func (k *checker) poolInSubnet(path, text string, s span) bool {
	if !k.Has("network.subnet") {
		return true
	}
	subnet := k.c.Network.Subnet
	switch {
	case !subnet.Contains(s.first) || !subnet.Contains(s.last):
		fix := ""
		if first, last := moved(s.first, subnet), moved(s.last, subnet); !last.Less(first) && strings.Contains(text, "-") {
			fix = fmt.Sprintf("; did you mean %s-%s?", first, last)
		} else {
			fix = "; write a range of its addresses"
		}
		k.Mistake(path, "%s is outside %s%s", text, subnet, fix)
	case s.contains(subnet.Addr()) || s.contains(lastAddress(subnet)):
		k.Mistake(path, "%s contains the network or broadcast address of %s; leave %s and %s out",
			text, subnet, subnet.Addr(), lastAddress(subnet))
	default:
		return true
	}
	return false
}

// largestServices is the longest range of Services that the API server takes: 20 bits for the host part
// (k8s.io/kubernetes, cmd/kube-apiserver/app/options, validateServiceClusterIPRange).
const largestServices = 12

// nodePods is the length of the part of the pod subnet that each node gets, the controller manager's default.
const nodePods = 24

func (k *checker) internalNetworks() {
	type network struct {
		path   string
		prefix netip.Prefix
	}
	// The internal networks have defaults, so they are checked even where the file does not name them.
	list := []network{}
	if k.Has("network.subnet") {
		list = append(list, network{"network.subnet", k.c.Network.Subnet})
	}
	for _, n := range []network{{"kubernetes.podSubnet", k.c.Kubernetes.PodSubnet}, {"kubernetes.serviceSubnet", k.c.Kubernetes.ServiceSubnet}} {
		if k.Broken(n.path) {
			continue
		}
		for _, other := range list {
			if n.prefix.Overlaps(other.prefix) {
				k.Mistake(n.path, "%s overlaps %s, %s; choose a range of its own, such as %s", n.prefix, other.path, other.prefix,
					separate(n.prefix.Bits(), k.c.Network.Subnet, k.c.Kubernetes.PodSubnet, k.c.Kubernetes.ServiceSubnet))
				break
			}
		}
		list = append(list, n)
	}
	if pods := k.c.Kubernetes.PodSubnet; !k.Broken("kubernetes.podSubnet") {
		if room := 1 << max(nodePods-pods.Bits(), 0); pods.Bits() > nodePods || room < len(k.c.Nodes) {
			k.Mistake("kubernetes.podSubnet", "%s is too small: each of the %d nodes takes a /%d of it; write a /16", pods, len(k.c.Nodes), nodePods)
		}
	}
	if services := k.c.Kubernetes.ServiceSubnet; !k.Broken("kubernetes.serviceSubnet") {
		switch {
		case services.Bits() < largestServices:
			k.Mistake("kubernetes.serviceSubnet", "%s is larger than the API server takes; write a /%d or a smaller one", services, largestServices)
		case services.Bits() > nodePods:
			k.Mistake("kubernetes.serviceSubnet", "%s is too small for a cluster's Services; write a /%d or a larger one", services, nodePods)
		}
	}
}

// separate finds a range of 10.0.0.0/8 that overlaps none of the others.
func separate(bits int, others ...netip.Prefix) netip.Prefix {
	bits = max(bits, largestServices)
	for a := netip.MustParseAddr("10.96.0.0"); ; a = address(number(a) + 1<<16) {
		p := netip.PrefixFrom(a, bits).Masked()
		alone := true
		for _, other := range others {
			alone = alone && !(other.IsValid() && p.Overlaps(other))
		}
		if alone || a.As4()[0] != 10 {
			return p
		}
	}
}
