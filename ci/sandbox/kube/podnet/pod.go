//go:build linux

package podnet

import (
	"fmt"
	"net/netip"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Pod is the network namespace of one pod.
type Pod struct {
	namespace *os.File
	link      string
	route     netlink.Route
}

// Pod makes a namespace that has an allocated address.
func (n *Network) Pod(a netip.Addr) (*Pod, error) {
	raw := a.As4()
	pod := &Pod{link: fmt.Sprintf("pod%02x%02x%02x%02x", raw[0], raw[1], raw[2], raw[3])}
	if err := n.connect(pod, a); err != nil {
		pod.Close()
		return nil, fmt.Errorf("make the network of the pod at %s: %w", a, err)
	}
	return pod, nil
}

func (n *Network) connect(pod *Pod, a netip.Addr) error {
	var err error
	if pod.namespace, err = newNamespace(); err != nil {
		return err
	}
	if old, err := netlink.LinkByName(pod.link); err == nil {
		if err := netlink.LinkDel(old); err != nil {
			return err
		}
	}
	attributes := netlink.NewLinkAttrs()
	attributes.Name, attributes.MasterIndex = pod.link, n.bridge.Attrs().Index
	err = netlink.LinkAdd(&netlink.Veth{LinkAttrs: attributes, PeerName: "eth0", PeerNamespace: netlink.NsFd(int(pod.namespace.Fd()))})
	if err != nil {
		return fmt.Errorf("add veth pair: %w", err)
	}
	outside, err := netlink.LinkByName(pod.link)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(outside); err != nil {
		return err
	}
	if err := pod.inside(func() error { return n.configure(a) }); err != nil {
		return err
	}
	pod.route = netlink.Route{LinkIndex: n.bridge.Attrs().Index, Dst: address(a).IPNet, Scope: netlink.SCOPE_LINK}
	return netlink.RouteReplace(&pod.route)
}

// configure runs inside a pod's namespace.
func (n *Network) configure(a netip.Addr) error {
	for _, name := range []string{"lo", "eth0"} {
		link, err := netlink.LinkByName(name)
		if err != nil {
			return err
		}
		if name == "eth0" {
			if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: subnet(netip.PrefixFrom(a, n.pods.Bits()))}); err != nil {
				return err
			}
		}
		if err := netlink.LinkSetUp(link); err != nil {
			return err
		}
	}
	return netlink.RouteAdd(&netlink.Route{Gw: n.gateway.AsSlice()})
}

// Enter moves the calling thread, which the caller has locked and never unlocks, into the pod's namespace.
func (p *Pod) Enter() error {
	if err := unix.Setns(int(p.namespace.Fd()), unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter the pod's network: %w", err)
	}
	return nil
}

// Close cuts the pod off. The namespace ends with its last process.
func (p *Pod) Close() {
	if p.route.Dst != nil {
		_ = netlink.RouteDel(&p.route)
	}
	if link, err := netlink.LinkByName(p.link); err == nil {
		_ = netlink.LinkDel(link)
	}
	if p.namespace != nil {
		p.namespace.Close()
	}
}

// inside calls a function on a thread in the pod's namespace.
func (p *Pod) inside(do func() error) error {
	return onOwnThread(func() error {
		if err := p.Enter(); err != nil {
			return err
		}
		return do()
	})
}

func newNamespace() (namespace *os.File, err error) {
	err = onOwnThread(func() error {
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		namespace, err = os.Open("/proc/thread-self/ns/net")
		return err
	})
	return namespace, err
}

// onOwnThread calls a function on a thread that ends with it.
func onOwnThread(do func() error) error {
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread's namespaces are not the process's any more
		done <- do()
	}()
	return <-done
}
