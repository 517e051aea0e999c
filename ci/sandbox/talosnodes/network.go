//go:build linux

package talosnodes

import (
	"errors"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

const (
	bridgeName = "castle-nodes"
	// cardName is what a machine's network card is called. Castle's configuration gives this name to a card of a virtual machine, and a node's
	// is none: it has it by itself.
	cardName = "net0"
)

// openBridge is the nodes' network, with an address of the world's own in it.
func openBridge(at netip.Prefix) (netlink.Link, error) {
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return nil, err
	}
	if err := netlink.LinkSetUp(loopback); err != nil {
		return nil, err
	}
	about := netlink.NewLinkAttrs()
	about.Name = bridgeName
	if err := netlink.LinkAdd(&netlink.Bridge{LinkAttrs: about}); err != nil {
		return nil, fmt.Errorf("make the bridge %s: %w", bridgeName, err)
	}
	bridge, err := netlink.LinkByName(bridgeName)
	if err != nil {
		return nil, err
	}
	return bridge, errors.Join(netlink.AddrAdd(bridge, address(at)), netlink.LinkSetUp(bridge))
}

func address(prefix netip.Prefix) *netlink.Addr {
	return &netlink.Addr{IPNet: &net.IPNet{IP: prefix.Addr().AsSlice(), Mask: net.CIDRMask(prefix.Bits(), prefix.Addr().BitLen())}}
}

// hardwareAddress is the same whenever a machine of an address starts, as a virtual machine's is: others remember it.
func hardwareAddress(at netip.Addr) net.HardwareAddr {
	return append(net.HardwareAddr{0x02, 0xca}, at.AsSlice()[at.BitLen()/8-4:]...) // 02: administered locally
}

// plug connects the network namespace of a process with the bridge, as a card that has an address and a way out. It ends with the namespace.
func plug(bridge netlink.Link, pid int, outside string, at netip.Prefix, gateway netip.Addr) error {
	about := netlink.NewLinkAttrs()
	about.Name, about.MasterIndex = outside, bridge.Attrs().Index
	card := &netlink.Veth{LinkAttrs: about, PeerName: cardName, PeerNamespace: netlink.NsPid(pid), PeerHardwareAddr: hardwareAddress(at.Addr())}
	if err := netlink.LinkAdd(card); err != nil {
		return fmt.Errorf("make its network card: %w", err)
	}
	outer, err := netlink.LinkByName(outside)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(outer); err != nil {
		return err
	}
	namespace, err := netns.GetFromPid(pid)
	if err != nil {
		return err
	}
	defer namespace.Close()
	in, err := netlink.NewHandleAt(namespace)
	if err != nil {
		return err
	}
	defer in.Close()
	for _, name := range []string{"lo", cardName} {
		link, err := in.LinkByName(name)
		if err != nil {
			return err
		}
		if name == cardName {
			if err := in.AddrAdd(link, address(at)); err != nil {
				return err
			}
		}
		if err := in.LinkSetUp(link); err != nil {
			return err
		}
	}
	return in.RouteAdd(&netlink.Route{Gw: gateway.AsSlice()})
}
