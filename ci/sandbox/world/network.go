//go:build linux

package world

import (
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// network gives the world's services and machines their addresses, all on the loopback interface of its namespace.
type network struct {
	loopback netlink.Link

	mutex sync.Mutex
	users map[netip.Addr]int // listeners at an address
}

// lastResort is a metric behind that of any card: real nodes have one, by which the subnet is reached.
const lastResort = 1 << 16

// openNetwork prepares the namespace for a world in a subnet. What nobody has there is not looked for outside of it: the machine that the
// world runs on may have a way to a network of the same addresses.
func openNetwork(subnet netip.Prefix) (*network, error) {
	loopback, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(loopback)
	}
	if err == nil {
		outside := &net.IPNet{IP: subnet.Masked().Addr().AsSlice(), Mask: net.CIDRMask(subnet.Bits(), subnet.Addr().BitLen())}
		err = netlink.RouteReplace(&netlink.Route{Dst: outside, Type: unix.RTN_UNREACHABLE, Priority: lastResort})
	}
	if err != nil {
		return nil, fmt.Errorf("the world needs a network namespace of its own, and the right to change it: %w", err)
	}
	return &network{loopback: loopback, users: map[netip.Addr]int{}}, nil
}

// listen listens at an address, which is there as long as somebody does.
func (n *network) listen(place netip.AddrPort) (net.Listener, error) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if err := netlink.AddrReplace(n.loopback, host(place.Addr())); err != nil {
		return nil, fmt.Errorf("add address %s: %w", place.Addr(), err)
	}
	listener, err := net.Listen("tcp", place.String())
	if err != nil {
		return nil, err
	}
	n.users[place.Addr()]++
	return &placed{Listener: listener, leave: sync.OnceFunc(func() { n.leave(place.Addr()) })}, nil
}

// has tells whether somebody listens at an address.
func (n *network) has(address netip.Addr) bool {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.users[address] > 0
}

func (n *network) leave(address netip.Addr) {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	if n.users[address]--; n.users[address] == 0 {
		_ = netlink.AddrDel(n.loopback, host(address)) // the plane may have taken it away
	}
}

func host(address netip.Addr) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: address.AsSlice(), Mask: net.CIDRMask(address.BitLen(), address.BitLen())}}
}

// placed is a listener that takes its address with it.
type placed struct {
	net.Listener
	leave func()
}

func (p *placed) Close() error {
	defer p.leave()
	return p.Listener.Close()
}
