//go:build linux

package podnet

import (
	"net/netip"
	"testing"
)

func TestAddressesComeInTurnAndLeaveOutWhatIsTaken(t *testing.T) {
	gateway := netip.MustParseAddr("10.244.0.1")
	n := &Network{pods: netip.MustParsePrefix("10.244.0.0/29"), gateway: gateway, last: gateway, used: map[netip.Addr]bool{}}
	taken := func(a netip.Addr) bool { return a == netip.MustParseAddr("10.244.0.4") }
	next := func() string {
		t.Helper()
		a, err := n.Allocate(taken)
		if err != nil {
			return err.Error()
		}
		return a.String()
	}
	expect := func(want string) {
		t.Helper()
		if got := next(); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
	}
	expect("10.244.0.2")
	expect("10.244.0.3")
	n.Release(netip.MustParseAddr("10.244.0.2"))
	expect("10.244.0.5") // not at once the one that was given back
	expect("10.244.0.6")
	expect("10.244.0.2") // neither the network's, the gateway's nor the broadcast address
	expect("pod subnet 10.244.0.0/29 has no free address")
	n.Release(netip.MustParseAddr("10.244.0.2"))
	expect("10.244.0.2")

	n.last, n.used = gateway, map[netip.Addr]bool{}
	if a, err := n.Allocate(func(netip.Addr) bool { return true }); err == nil {
		t.Errorf("got %s although all addresses are taken", a)
	}
}
