package config

import "net/netip"

// PoolAddresses are those of the load balancer's pool, in its order, at most that many.
func (c *Cluster) PoolAddresses(most int) []netip.Addr {
	var list []netip.Addr
	for _, text := range c.LoadBalancer.Pool {
		span, _ := readPool(text) // it was checked
		for address := span.first; span.contains(address) && len(list) < most; address = address.Next() {
			list = append(list, address)
		}
	}
	return list
}
