package preflight

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/hypervisor"
	"tazlab.net/castle/ci/cluster/talos"
)

// ports are where a machine may answer: ssh, the web, the APIs of Kubernetes and Talos. One that refuses a connection is there, too; one
// that drops it at all of them is not found this way.
var ports = []int{22, 80, 443, 6443, talosPort}

// talosPort is that of Talos's API, in maintenance mode, too.
const talosPort = 50000

const (
	probeTime = time.Second
	// probesAtOnce lets all ports of a cluster of twenty nodes be asked at the same time.
	probesAtOnce = 512
	// poolAtMost is how many addresses of the load balancer's pool are asked.
	poolAtMost = 64
)

// addresses looks for strangers at those that the cluster is going to have: of nodes whose VM does not run, of the API before a control
// plane runs, and of the load balancer before any VM does.
func addresses(ctx context.Context, s *inspection) []finding {
	vms, why := s.seen()
	controlPlane, any := vms.running(s.described, config.RoleControlPlane), vms.running(s.described, "")
	if !s.described.MakesMachines() {
		controlPlane, any, why = s.up()
	}
	if why != nil {
		return why
	}
	wanted, order := s.unused(vms, controlPlane, any)
	if len(order) == 0 {
		return ok("its own machines have them")
	}
	answers := s.probeAll(ctx, order)
	if ctx.Err() != nil { // what was not asked did not answer either
		return notChecked("not all of the %d were asked in time", len(order))
	}
	var found []finding
	for _, address := range order {
		answer, is := answers[address]
		if !is {
			continue
		}
		found = append(found, finding{Failed, fmt.Sprintf("somebody answers at %s, the address of %s (port %d %s)", address, wanted[address], answer.port, answer),
			fmt.Sprintf("find out whose it is (ip neigh show %s), and give it, or %s, another address", address, wanted[address])})
	}
	switch {
	case found == nil:
		return ok("nobody answers at any of the %d", len(order))
	case len(found) == len(order) && (len(order) > few || s.intercepted(ctx)):
		return []finding{{Warning, fmt.Sprintf("all %d addresses answer, as a firewall or a proxy on the way to them would: nothing is known of them", len(order)),
			"look from a machine of that network whether they are free"}}
	}
	return found
}

// machinesAnswer looks for the cluster's machines that run at their declared addresses: one that has another address, as of a DHCP
// server, cannot be reached by anybody who goes by cluster.yaml.
func machinesAnswer(ctx context.Context, s *inspection) []finding {
	if !s.described.MakesMachines() {
		return machinesStand(s)
	}
	vms, why := s.seen()
	if why != nil {
		return why
	}
	running := 0
	var mu sync.Mutex
	away := map[string]bool{}
	var wait sync.WaitGroup
	for _, node := range s.described.Nodes {
		if vms.own[node.Name].Status != hypervisor.Running {
			continue
		}
		running++
		wait.Go(func() {
			if _, there := s.probe(ctx, node.Address, talosPort); !there {
				mu.Lock()
				defer mu.Unlock()
				away[node.Name] = true
			}
		})
	}
	wait.Wait()
	var found []finding
	for _, node := range s.described.Nodes {
		if away[node.Name] {
			found = append(found, finding{Warning, fmt.Sprintf("VM %d of %s runs, and nobody answers at its declared address %s", node.VMID, node.Name, node.Address),
				"its console in Proxmox shows the address that it has: give it its static one, or correct cluster.yaml; a machine that has just been started needs a minute"})
		}
	}
	switch {
	case found != nil:
		return found
	case running == 0:
		return ok("none of the cluster's runs")
	}
	return ok("%s at the declared addresses", rendering.Count(running, "machine"))
}

// few is up to how many addresses may all belong to strangers.
const few = 3

// nobodys is an address that no machine has (RFC 5737, TEST-NET-1).
var nobodys = netip.MustParseAddr("192.0.2.1")

// intercepted tells that connections are answered by something on their way.
func (s *inspection) intercepted(ctx context.Context) bool {
	_, answers := s.probeAll(ctx, []netip.Addr{nobodys})[nobodys]
	return answers
}

// unused are the addresses that nobody should have yet, with what they are for: whether a control plane of the cluster's is up, or any machine,
// says which. Machines that castle does not make are at theirs.
func (s *inspection) unused(vms machines, controlPlane, any bool) (wanted map[netip.Addr]string, order []netip.Addr) {
	wanted = map[netip.Addr]string{}
	add := func(address netip.Addr, what string) {
		wanted[address] = what
		order = append(order, address)
	}
	for _, node := range s.described.Nodes {
		if s.described.MakesMachines() && vms.own[node.Name].Status != hypervisor.Running {
			add(node.Address, "node "+node.Name)
		}
	}
	if !controlPlane {
		add(s.described.Endpoint, "the Kubernetes API")
	}
	if !any {
		for _, address := range s.described.PoolAddresses(poolAtMost) {
			add(address, "the load balancer")
		}
	}
	return wanted, order
}

// answer is what was seen at an address.
type answer struct {
	port     int
	accepted bool
}

func (a answer) String() string {
	if a.accepted {
		return "accepts connections"
	}
	return "refuses connections"
}

// probeAll asks all ports of all addresses. One that accepts says more than one that refuses.
func (s *inspection) probeAll(ctx context.Context, all []netip.Addr) map[netip.Addr]answer {
	var mu sync.Mutex
	answers := map[netip.Addr]answer{}
	var group errgroup.Group
	group.SetLimit(probesAtOnce)
	for _, address := range all {
		for _, port := range ports {
			group.Go(func() error {
				accepted, there := s.probe(ctx, address, port)
				mu.Lock()
				defer mu.Unlock()
				if before, known := answers[address]; there && (!known || accepted && !before.accepted || accepted == before.accepted && port < before.port) {
					answers[address] = answer{port, accepted}
				}
				return nil
			})
		}
	}
	_ = group.Wait() // none gives an error
	return answers
}

// probe asks one port, through the proxy where there is one. Of a proxy's answer only the words are known.
func probe(ctx context.Context, address netip.Addr, port int) (accepted, there bool) {
	ctx, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	connection, err := talos.Reach(ctx, net.JoinHostPort(address.String(), strconv.Itoa(port)))
	if err == nil {
		_ = connection.Close()
		return true, true
	}
	return false, errors.Is(err, syscall.ECONNREFUSED) || strings.Contains(err.Error(), "connection refused")
}
