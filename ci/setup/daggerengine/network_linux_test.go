package daggerengine

import (
	"net/netip"
	"strings"
	"testing"
)

func TestEnginesOfTwoCachesShareNoNetwork(t *testing.T) {
	first, err := Engine{Cache: "/one"}.network()
	if err != nil {
		t.Fatal(err)
	}
	second, err := Engine{Cache: "/two"}.network()
	if err != nil {
		t.Fatal(err)
	}
	if first.bridge() == second.bridge() {
		t.Errorf("both have the bridge %s", first.bridge())
	}
	if length := len(first.bridge()); length > 15 {
		t.Errorf("the name of the bridge %s has %d characters, the kernel takes 15", first.bridge(), length)
	}
	// Even one that would choose alike takes another, once it sees the first.
	chosen, err := first.cidr(nil)
	if err != nil {
		t.Fatal(err)
	}
	gateway := netip.PrefixFrom(chosen.Addr().Next(), 16)
	other, err := first.cidr([]netip.Prefix{gateway, netip.MustParsePrefix("fe80::1/64")})
	if err != nil {
		t.Fatal(err)
	}
	if other.Overlaps(chosen) {
		t.Errorf("%s and %s overlap", other, chosen)
	}
}

func TestAMachineInAllNetworksIsTold(t *testing.T) {
	own, err := Engine{Cache: "/one"}.network()
	if err != nil {
		t.Fatal(err)
	}
	_, err = own.cidr([]netip.Prefix{netip.MustParsePrefix("10.1.2.3/8")})
	if err == nil || !strings.Contains(err.Error(), "10.87.0.0/16") {
		t.Errorf("error: %v, want one that names the networks", err)
	}
}
