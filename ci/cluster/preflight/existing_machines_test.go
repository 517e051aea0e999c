package preflight

import (
	"net/netip"
	"strings"
	"testing"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/talos"
)

func TestMachinesThatCastleDoesNotMakeAreThereOrNamed(t *testing.T) {
	for states, want := range map[string]string{
		"maintenance maintenance maintenance": "ok 3 machines in maintenance mode, 0 with the cluster's configuration",
		"configured maintenance configured":   "ok 1 machine in maintenance mode, 2 with the cluster's configuration",
		"configured silent ghost":             "failed nobody answers at 192.168.1.212, the address of metal-2 (port 50000)\nfailed the machine of metal-3 at 192.168.1.213 is of another cluster: it asks for a client certificate of another authority",
	} {
		if got := verdicts(machinesStand(standing(states))); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", states, got, want)
		}
	}
}

// The virtual IP and the pool are nobody's before the cluster is there, and the machines' addresses are theirs all the time.
func TestAddressesOfMachinesThatAreThereAreTheirs(t *testing.T) {
	for states, want := range map[string]string{
		"maintenance maintenance maintenance": "192.168.1.210 192.168.1.220",
		"maintenance maintenance configured":  "192.168.1.210",
		"configured maintenance silent":       "",
	} {
		s := standing(states)
		controlPlane, any, why := s.up()
		if why != nil {
			t.Fatal(why)
		}
		_, order := s.unused(machines{}, controlPlane, any)
		var got []string
		for _, address := range order {
			got = append(got, address.String())
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v", states, got)
		}
	}
}

func TestARowOfProxmoxIsNoneOfAClusterWithoutIt(t *testing.T) {
	for _, row := range standing("silent").table() {
		if row.group == groupProxmox {
			t.Errorf("there is a row %s", row.name)
		}
	}
}

// standing is a cluster whose first machine is a control plane, and whose others are workers.
func standing(states string) *inspection {
	described := &config.Cluster{Platform: config.PlatformTalos, Endpoint: netip.MustParseAddr("192.168.1.210"),
		LoadBalancer: config.LoadBalancer{Pool: []string{"192.168.1.220/32"}}}
	var list []talos.NodeStatus
	address := netip.MustParseAddr("192.168.1.211")
	for i, state := range strings.Fields(states) {
		role := config.RoleWorker
		if i == 0 {
			role = config.RoleControlPlane
		}
		name := "metal-" + string(rune('1'+i))
		described.Nodes = append(described.Nodes, config.Node{Name: name, Role: role, Address: address})
		list = append(list, talos.NodeStatus{Name: name, Role: role, Address: address.String(), State: state})
		address = address.Next()
	}
	return &inspection{described: described, standing: func() ([]talos.NodeStatus, error) { return list, nil }}
}

func verdicts(found []finding) string {
	var lines []string
	for _, one := range found {
		lines = append(lines, string(one.verdict)+" "+one.seen)
	}
	return strings.Join(lines, "\n")
}
