//go:build linux

package talosnodes

import (
	"context"
	"net/netip"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/client"
	"google.golang.org/protobuf/types/known/emptypb"

	clusterconfig "tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/talos"
	"tazlab.net/castle/ci/cluster/talos/machineconfig"
	sandbox "tazlab.net/castle/ci/sandbox/talosnodes"
)

// wanted is the variable that asks for real nodes: what scripts/setup-talos.sh prints, with colons between.
const wanted = "CASTLE_TALOS_NODES"

var subnet = netip.MustParsePrefix("10.5.0.0/24")

// real are real Talos nodes in the network namespace of this process.
type real struct {
	*yard
	world *sandbox.World
}

// newReal opens a world for real nodes of a cluster; folders is how many there are in the variable.
func newReal(t *testing.T, cluster *clusterconfig.Cluster, folders int, components func(made []string) *sandbox.Components) *yard {
	t.Helper()
	made := filepath.SplitList(os.Getenv(wanted))
	if len(made) != folders {
		t.Skip("NOT RUN: it needs what real Talos nodes are made of; `make drill-talos` builds it")
	}
	options := sandbox.Options{
		Dir: t.TempDir(), Node: made[0], Talos: made[1], Containerd: made[2], Etcd: filepath.Join(made[3], "etcd"),
		Kubernetes: cluster.Kubernetes.Version, Address: netip.PrefixFrom(cluster.Network.Gateway, 24), Components: components(made[4:]),
	}
	world, err := sandbox.Open(options)
	if err != nil {
		t.Fatal(err)
	}
	r := &real{world: world}
	r.yard = newYard(t, r, cluster, 10*time.Minute)
	t.Cleanup(func() {
		if t.Failed() {
			r.keepConsoles(t)
		}
		if err := world.Close(); err != nil {
			t.Error(err)
		}
	})
	return r.yard
}

// keepConsoles copies what nodes said to a folder that outlives the test.
func (r *real) keepConsoles(t *testing.T) {
	t.Helper()
	folder, err := os.MkdirTemp("", "talos-nodes-")
	if err != nil {
		t.Error(err)
		return
	}
	for _, node := range r.cluster.Nodes {
		if data, err := os.ReadFile(r.world.Console(node.Name)); err == nil {
			if err := os.WriteFile(filepath.Join(folder, node.Name+".log"), data, 0o644); err != nil {
				t.Error(err)
			}
		}
	}
	t.Logf("what the nodes' consoles say is in %s", folder)
}

func (r *real) start(node clusterconfig.Node) error { return r.world.Start(node.Name, node.Address) }
func (r *real) cut(node clusterconfig.Node) error   { return r.world.PowerCut(node.Name) }
func (r *real) wipe(node clusterconfig.Node) error  { return r.world.Wipe(node.Name) }
func (r *real) port() uint16                        { return 50000 }
func (r *real) options() talos.Options              { return talos.Options{} }

func (r *real) stop(_ *testing.T, node clusterconfig.Node) (off func() error) {
	ended := make(chan error, 1)
	go func() { ended <- r.world.Stop(node.Name) }()
	return func() error { return <-ended }
}

// holder asks who answers at the virtual address.
func (r *real) holder(t *testing.T) string {
	t.Helper()
	_, config, err := machineconfig.Configs(r.cluster, r.bundle)
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(t.Context(), client.WithConfigContext(config.Contexts[config.Context]), client.WithEndpoints(r.endpoint(r.cluster.Endpoint)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	answer, err := c.MachineClient.Hostname(ctx, &emptypb.Empty{})
	if err != nil || len(answer.GetMessages()) == 0 {
		return ""
	}
	return answer.GetMessages()[0].GetHostname()
}

func TestRealNodes(t *testing.T) {
	play(t, newReal(t, clusterIn(subnet), 4, func([]string) *sandbox.Components { return nil }))
}
