package preflight

import (
	"net"
	"net/netip"
	"testing"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/hypervisor"
	"tazlab.net/castle/ci/sandbox/proxmox"
)

func TestAPortThatAcceptsOrRefusesIsSomebodys(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	at := netip.MustParseAddrPort(listener.Addr().String())
	if accepted, there := probe(t.Context(), at.Addr(), int(at.Port())); !accepted || !there {
		t.Errorf("a listener: accepted %v, there %v", accepted, there)
	}
	listener.Close()
	if accepted, there := probe(t.Context(), at.Addr(), int(at.Port())); accepted || !there {
		t.Errorf("nobody at the port: accepted %v, there %v", accepted, there)
	}
	// TEST-NET-1, RFC 5737
	if accepted, _ := probe(t.Context(), netip.MustParseAddr("192.0.2.1"), 22); accepted {
		t.Error("an address that nobody has accepts a connection")
	}
}

// What answers for everybody is no machine at each of the addresses.
func TestWhereAllAnswerNothingIsKnown(t *testing.T) {
	for _, accepts := range []bool{false, true} {
		w := newWorld(t, func(w *world) {
			w.strangers = map[netip.Addr]answer{}
			for address := netip.MustParseAddr("192.168.1.210"); address != netip.MustParseAddr("192.168.1.240"); address = address.Next() {
				w.strangers[address] = answer{22, accepts}
			}
		})
		if rows := w.rows()["network addresses"]; len(rows) != 1 || rows[0].Verdict != Warning {
			t.Errorf("accepts %v: got %+v", accepts, rows)
		}
	}
}

func TestOneAddressThatAnswersIsAStrangersUnlessNobodysAnswers(t *testing.T) {
	node := netip.MustParseAddr("192.168.1.211")
	for name, story := range map[string]struct {
		strangers map[netip.Addr]answer
		want      Verdict
	}{
		"it answers":                {map[netip.Addr]answer{node: {443, true}}, Failed},
		"nobody's answers likewise": {map[netip.Addr]answer{node: {443, true}, nobodys: {443, true}}, Warning},
	} {
		w := newWorld(t, func(w *world) {
			w.strangers = story.strangers
			for i, name := range []string{"blue-cp-1", "blue-cp-2", "blue-cp-3", "blue-worker-1", "blue-worker-2"} { // the first one is off
				w.guests = append(w.guests, proxmox.Guest{Running: i > 0, VM: proxmox.VM{ID: 421 + i, Name: name, Tags: []string{"castle-blue"}}})
			}
		})
		if rows := w.rows()["network addresses"]; len(rows) != 1 || rows[0].Verdict != story.want {
			t.Errorf("%s: got %+v", name, rows)
		}
	}
}

func TestAPoolIsAskedUpToALimit(t *testing.T) {
	s := &inspection{described: &config.Cluster{LoadBalancer: config.LoadBalancer{Pool: []string{"10.0.0.8/30", "10.1.0.0/16"}}}}
	_, order := s.unused(machines{own: map[string]hypervisor.VM{}}, false, false)
	if n := len(order); n != poolAtMost+1 || order[1] != netip.MustParseAddr("10.0.0.8") || order[5] != netip.MustParseAddr("10.1.0.0") {
		t.Errorf("%d addresses are asked: %v", n, order)
	}
}
