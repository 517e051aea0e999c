package talosnodes

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/talos"
	"tazlab.net/castle/ci/sandbox/profile"
	sandbox "tazlab.net/castle/ci/sandbox/talos"
)

// scale is how much faster the simulator is than a homelab.
const scale = 0.02

// simulated are simulated machines on loopback addresses.
type simulated struct {
	*yard
	fleet *sandbox.Fleet
	free  uint16

	mutex sync.Mutex
	vip   string // who holds it
}

func newSimulated(t *testing.T) *yard {
	t.Helper()
	// Runs of these tests may go on side by side on a machine.
	cluster := clusterIn(netip.PrefixFrom(netip.AddrFrom4([4]byte{127, byte(64 + os.Getpid()%128), 250, 0}), 24))
	p, err := profile.New(profile.NameHomelab, scale, nil)
	if err != nil {
		t.Fatal(err)
	}
	// So that a learner is one, and has yet to start its etcd, for long enough to be seen on a busy machine.
	p.Delays.EtcdPromote, p.Delays.EtcdJoin = time.Minute, time.Minute
	s := &simulated{}
	s.yard = newYard(t, s, cluster, 30*time.Second)
	port, err := net.Listen("tcp", net.JoinHostPort(cluster.Nodes[0].Address.String(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	s.free = port.Addr().(*net.TCPAddr).AddrPort().Port()
	_ = port.Close() // only its number was wanted
	s.fleet, err = sandbox.New(sandbox.Options{Profile: p, Cluster: s, State: filepath.Join(t.TempDir(), "talos.json"), Port: s.free,
		Template: sandbox.Template{Talos: cluster.Talos.Version},
		Listen:   func(at netip.AddrPort) (net.Listener, error) { return net.Listen("tcp", at.String()) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.fleet.Close() })
	return s.yard
}

func (s *simulated) start(node config.Node) error {
	return s.fleet.PowerOn(sandbox.VM{ID: node.VMID, Name: node.Name, Address: netip.PrefixFrom(node.Address, 24), Gateway: s.cluster.Network.Gateway,
		Cores: 2, MemoryMiB: node.Memory, MAC: "bc:24:11:00:00:01"})
}

func (s *simulated) cut(node config.Node) error  { return s.fleet.PowerOff(node.VMID) }
func (s *simulated) wipe(node config.Node) error { return s.fleet.Removed(node.VMID) }
func (s *simulated) port() uint16                { return s.free }

func (s *simulated) stop(t *testing.T, node config.Node) (off func() error) {
	t.Helper()
	if err := s.person(t, node.Address).Shutdown(call(t)); err != nil {
		t.Fatal(err)
	}
	return func() error {
		for s.fleet.Running(node.VMID) && t.Context().Err() == nil {
			time.Sleep(10 * time.Millisecond)
		}
		return t.Context().Err()
	}
}

func (s *simulated) options() talos.Options {
	return talos.Options{Port: int(s.free), Poll: 50 * time.Millisecond, EtcdDeadline: 30 * time.Second, NodeDeadline: 30 * time.Second,
		NoopGrace: time.Second, LearnerGrace: 3 * time.Second}
}

func (s *simulated) holder(*testing.T) string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.vip
}

func (s *simulated) VIP(_ netip.Addr, holder *sandbox.Node) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.vip = ""
	if holder != nil {
		s.vip = holder.Name
	}
}

// There is no Kubernetes on these machines, as on the real ones.
func (*simulated) ControlPlaneUp(context.Context, sandbox.Node, sandbox.ControlPlane) error {
	return nil
}
func (*simulated) ControlPlaneDown(sandbox.Node)              {}
func (*simulated) NodeUp(context.Context, sandbox.Node) error { return nil }
func (*simulated) NodeDown(sandbox.Node)                      {}
func (*simulated) Pull(context.Context, sandbox.Node, string) error {
	return nil
}

func TestSimulatedMachines(t *testing.T) { play(t, newSimulated(t)) }
