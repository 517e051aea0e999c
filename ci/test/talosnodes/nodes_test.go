package talosnodes

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/status"

	clusterconfig "tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/talos"
	"tazlab.net/castle/ci/cluster/talos/machineconfig"
)

// nodes are machines that run Talos, one for each node of a description, simulated or real. A disk that was never used is empty.
type nodes interface {
	start(node clusterconfig.Node) error
	cut(node clusterconfig.Node) error                             // its power
	wipe(node clusterconfig.Node) error                            // it is off, and its disk empty
	stop(t *testing.T, node clusterconfig.Node) (off func() error) // in order, which off waits for
	holder(t *testing.T) string                                    // of the virtual address; "" where nobody has it
	port() uint16                                                  // of the Talos API
	options() talos.Options                                        // for times that suit them
}

// yard is nodes of one cluster, and what a person has for it.
type yard struct {
	nodes
	cluster *clusterconfig.Cluster
	bundle  *machineconfig.Bundle
	lasts   time.Duration // how long anything of these machines may last
}

// clusterIn describes three control planes and a worker with addresses of a subnet.
func clusterIn(subnet netip.Prefix) *clusterconfig.Cluster {
	address := func(last byte) netip.Addr {
		bytes := subnet.Masked().Addr().As4()
		bytes[3] = last
		return netip.AddrFrom4(bytes)
	}
	c := &clusterconfig.Cluster{
		Name: "yard", Platform: clusterconfig.PlatformSandbox, Endpoint: address(210),
		Network:    clusterconfig.Network{Subnet: subnet, Gateway: address(1), DNS: []netip.Addr{address(1)}},
		Talos:      clusterconfig.Talos{Version: "v1.13.9"},
		Kubernetes: clusterconfig.Kubernetes{Version: "v1.36.2", PodSubnet: netip.MustParsePrefix("10.244.0.0/16"), ServiceSubnet: netip.MustParsePrefix("10.96.0.0/16")},
	}
	for i, name := range []string{"yard-cp-1", "yard-cp-2", "yard-cp-3", "yard-worker-1"} {
		node := clusterconfig.Node{Name: name, Role: clusterconfig.RoleControlPlane, Address: address(byte(211 + i)), VMID: 521 + i, Memory: 2048}
		if i == 3 {
			node.Role = clusterconfig.RoleWorker
		}
		c.Nodes = append(c.Nodes, node)
	}
	return c
}

var secrets = sync.OnceValues(func() ([]byte, error) {
	return machineconfig.NewSecrets(&clusterconfig.Cluster{Name: "yard", Talos: clusterconfig.Talos{Version: "v1.13.9"}})
})

func newYard(t *testing.T, on nodes, cluster *clusterconfig.Cluster, lasts time.Duration) *yard {
	t.Helper()
	data, err := secrets()
	if err != nil {
		t.Fatal(err)
	}
	bundle, err := machineconfig.ParseSecrets(data)
	if err != nil {
		t.Fatal(err)
	}
	return &yard{nodes: on, cluster: cluster, bundle: bundle, lasts: lasts}
}

// up is what create does with machines, from wherever they are.
func (y *yard) up(t *testing.T) talos.Report {
	t.Helper()
	began := time.Now()
	report, err := y.tryUp(t, y.bundle)
	if err != nil {
		t.Fatalf("up: %v (%+v)", err, report)
	}
	t.Logf("up took %s", time.Since(began).Round(100*time.Millisecond))
	return report
}

func (y *yard) tryUp(t *testing.T, bundle *machineconfig.Bundle) (talos.Report, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), y.lasts)
	defer cancel()
	options := y.options()
	began := time.Now()
	options.Event = func(event talos.Event) {
		t.Logf("%5.1f s %s %s %s %s %s", time.Since(began).Seconds(), event.Step, event.Node, event.Phase, event.Result, event.Cause)
	}
	return talos.Up(ctx, y.cluster, bundle, options)
}

func (y *yard) access(t *testing.T) *talos.Access {
	t.Helper()
	access, err := talos.Dial(y.cluster, y.bundle, y.options())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(access.Close)
	return access
}

func (y *yard) endpoint(at netip.Addr) string {
	return net.JoinHostPort(at.String(), strconv.Itoa(int(y.port())))
}

// person is a client with an administrator's certificate, for one address.
func (y *yard) person(t *testing.T, at netip.Addr) *client.Client {
	t.Helper()
	_, config, err := machineconfig.Configs(y.cluster, y.bundle)
	if err != nil {
		t.Fatal(err)
	}
	return y.client(t, at, client.WithConfigContext(config.Contexts[config.Context]))
}

// stranger is a client without a certificate, for a machine in maintenance mode.
func (y *yard) stranger(t *testing.T, at netip.Addr) *client.Client {
	t.Helper()
	return y.client(t, at, client.WithConfigContext(&clientconfig.Context{}), client.WithTLSConfig(&tls.Config{InsecureSkipVerify: true}))
}

func (y *yard) client(t *testing.T, at netip.Addr, options ...client.OptionFunc) *client.Client {
	t.Helper()
	options = append(options, client.WithEndpoints(y.endpoint(at)), client.WithGRPCDialOptions(grpc.WithConnectParams(grpc.ConnectParams{
		Backoff: backoff.Config{BaseDelay: 20 * time.Millisecond, MaxDelay: 200 * time.Millisecond}, MinConnectTimeout: time.Second})))
	c, err := client.New(t.Context(), options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// config is the configuration of a node, as create gives it.
func (y *yard) config(t *testing.T, node clusterconfig.Node) []byte {
	t.Helper()
	configs, _, err := machineconfig.Configs(y.cluster, y.bundle)
	if err != nil {
		t.Fatal(err)
	}
	data, err := configs[node.Name].Bytes()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// call gives one call the time that any call may take.
func call(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// eventually waits for what follows from something that was done.
func (y *yard) eventually(t *testing.T, what string, happened func() error) {
	t.Helper()
	began := time.Now()
	for {
		err := happened()
		if err == nil {
			t.Logf("%s after %s", what, time.Since(began).Round(100*time.Millisecond))
			return
		}
		if time.Since(began) > y.lasts {
			t.Fatalf("not in %s: %s: %v", y.lasts, what, err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// said is a call's answer as a person is told it.
func said(err error) string {
	if err == nil {
		return "OK"
	}
	s := status.Convert(err)
	return fmt.Sprintf("%s: %s", s.Code(), s.Message())
}

func unless(condition bool, format string, args ...any) error {
	if condition {
		return nil
	}
	return fmt.Errorf(format, args...)
}
