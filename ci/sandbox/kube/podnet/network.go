//go:build linux

package podnet

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

const bridgeName = "pods0"

// Network is the pod and service networks.
type Network struct {
	pods    netip.Prefix
	gateway netip.Addr // the bridge's address, the first of the pod subnet
	bridge  netlink.Link
	local   netlink.Link // the loopback interface

	mu   sync.Mutex
	last netip.Addr
	used map[netip.Addr]bool
}

// Open makes the networks, or takes over what a former call left in this namespace.
func Open(pods, services netip.Prefix) (*Network, error) {
	pods, services = pods.Masked(), services.Masked()
	if !pods.Addr().Is4() || !services.Addr().Is4() {
		return nil, fmt.Errorf("pod subnet %s and service subnet %s must be IPv4", pods, services)
	}
	n := &Network{pods: pods, gateway: pods.Addr().Next(), used: map[netip.Addr]bool{}}
	n.last = n.gateway
	if err := n.open(services); err != nil {
		if errors.Is(err, unix.EPERM) {
			return nil, fmt.Errorf("make the pod network: %w: run privileged, in a network namespace of its own", err)
		}
		return nil, fmt.Errorf("make the pod network: %w", err)
	}
	return n, nil
}

func (n *Network) open(services netip.Prefix) error {
	var err error
	if n.local, err = netlink.LinkByName("lo"); err != nil {
		return err
	}
	if err := netlink.LinkSetUp(n.local); err != nil {
		return err
	}
	attributes := netlink.NewLinkAttrs()
	attributes.Name = bridgeName
	// A bridge without an address of its own takes over its ports', and pods would talk to one that is gone.
	attributes.HardwareAddr = net.HardwareAddr{0x02, 0xca, 0x57, 0x1e, 0x00, 0x01}
	if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: attributes}); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("add bridge %s: %w", bridgeName, err)
	}
	if n.bridge, err = netlink.LinkByName(bridgeName); err != nil {
		return err
	}
	if err := netlink.AddrReplace(n.bridge, address(n.gateway)); err != nil {
		return err
	}
	if err := netlink.LinkSetUp(n.bridge); err != nil {
		return err
	}
	// Services are answered by whoever listens, refused otherwise.
	err = netlink.RouteReplace(&netlink.Route{
		LinkIndex: n.local.Attrs().Index, Dst: subnet(services), Type: unix.RTN_LOCAL, Table: unix.RT_TABLE_LOCAL, Scope: netlink.SCOPE_HOST,
	})
	if err != nil {
		return fmt.Errorf("make %s local: %w", services, err)
	}
	// A pod that does not run is unreachable at once, instead of after the kernel's search for its neighbour.
	return netlink.RouteReplace(&netlink.Route{Dst: subnet(n.pods), Type: unix.RTN_UNREACHABLE})
}

// AddAddress makes an address one of this machine's.
func (n *Network) AddAddress(a netip.Addr) error {
	if err := netlink.AddrReplace(n.local, address(a)); err != nil {
		return fmt.Errorf("add address %s: %w", a, err)
	}
	return nil
}

// RemoveAddress takes an address away; one that is not there is fine.
func (n *Network) RemoveAddress(a netip.Addr) error {
	if err := netlink.AddrDel(n.local, address(a)); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
		return fmt.Errorf("remove address %s: %w", a, err)
	}
	return nil
}

// Gateway is where pods reach this namespace.
func (n *Network) Gateway() netip.Addr { return n.gateway }

// Allocate takes an address that is neither in use nor taken. Addresses come in turn, so that one that was given back is
// not soon another pod's.
func (n *Network) Allocate(taken func(netip.Addr) bool) (netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	a := n.last
	for range 1 << (a.BitLen() - n.pods.Bits()) {
		if a = a.Next(); !n.pods.Contains(a.Next()) { // the last address is the broadcast's
			a = n.pods.Addr()
		}
		if a != n.pods.Addr() && a != n.gateway && !n.used[a] && (taken == nil || !taken(a)) {
			n.used[a], n.last = true, a
			return a, nil
		}
	}
	return netip.Addr{}, fmt.Errorf("pod subnet %s has no free address", n.pods)
}

// Release gives an address back.
func (n *Network) Release(a netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.used, a)
}

func address(a netip.Addr) *netlink.Addr {
	return &netlink.Addr{IPNet: subnet(netip.PrefixFrom(a, a.BitLen()))}
}

func subnet(p netip.Prefix) *net.IPNet {
	return &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}
}
