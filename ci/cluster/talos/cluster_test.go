package talos_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	sidero "github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/client"

	"tazlab.net/castle/ci/base/porttest"
	clusterconfig "tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/talos"
	"tazlab.net/castle/ci/cluster/talos/machineconfig"
	"tazlab.net/castle/ci/sandbox/profile"
	sandbox "tazlab.net/castle/ci/sandbox/talos"
	"tazlab.net/castle/ci/test/tell"
)

// world is simulated machines of one cluster on loopback addresses, with a Kubernetes that is only noted down, and an API
// server that answers /readyz where the virtual address is held.
type world struct {
	t       *testing.T
	cluster *clusterconfig.Cluster
	bundle  *machineconfig.Bundle
	profile profile.Profile
	state   string
	fleet   *sandbox.Fleet
	port    uint16
	route   func(netip.Addr) netip.Addr // where an address really is; the identity unless a proxy stands between

	mu    sync.Mutex
	up    map[string]bool // control planes
	nodes map[string]bool
	pulls func(ctx context.Context, image string) error // how a pull goes; nil: at once and well
	local map[string][]string                           // images by node
	vip   []string                                      // holders, "" for none
	api   *httptest.Server
}

// second gives each run of these tests, of which several may go on at once on a machine, loopback addresses of its own.
var second = 64 + os.Getpid()%128

// subnets gives each world addresses of its own.
var subnets struct {
	sync.Mutex
	next int
}

func newWorld(t *testing.T, p profile.Profile) *world {
	t.Helper()
	subnets.Lock()
	subnets.next++
	third := subnets.next
	subnets.Unlock()
	address := func(last int) netip.Addr {
		return netip.MustParseAddr(fmt.Sprintf("127.%d.%d.%d", second, third, last))
	}
	c := &clusterconfig.Cluster{
		Name: "sandbox", Platform: clusterconfig.PlatformSandbox, Endpoint: address(210),
		Network: clusterconfig.Network{Subnet: netip.PrefixFrom(address(0), 24), Gateway: address(1), DNS: []netip.Addr{address(1)}},
		Talos: clusterconfig.Talos{Version: "v1.13.9", Schematic: "613e1592b2da41ae5e265e8789429f22e121aab91cb4deb6bc3c0b6262961245",
			Extensions: []string{"siderolabs/iscsi-tools", "siderolabs/util-linux-tools"}, KernelModules: []string{"iscsi_tcp", "dm_crypt"}},
		Kubernetes: clusterconfig.Kubernetes{Version: "v1.36.2", PodSubnet: netip.MustParsePrefix("10.244.0.0/16"), ServiceSubnet: netip.MustParsePrefix("10.96.0.0/16")},
		Storage:    clusterconfig.Storage{DataPath: "/var/lib/longhorn"},
	}
	for i := range 5 {
		node := clusterconfig.Node{Name: fmt.Sprintf("sandbox-cp-%d", i+1), Role: clusterconfig.RoleControlPlane, Address: address(211 + i), VMID: 521 + i, Memory: 8192}
		if i >= 3 {
			node.Name, node.Role = fmt.Sprintf("sandbox-worker-%d", i-2), clusterconfig.RoleWorker
		}
		c.Nodes = append(c.Nodes, node)
	}
	w := &world{t: t, cluster: c, profile: p, state: filepath.Join(t.TempDir(), "talos.json"), port: uint16(porttest.Free(t, c.Nodes[0].Address.String())),
		route: func(a netip.Addr) netip.Addr { return a }, up: map[string]bool{}, nodes: map[string]bool{}, local: map[string][]string{}}
	w.use(commonSecrets())
	w.open()
	t.Cleanup(func() { _ = w.fleet.Close() })
	return w
}

// commonSecrets are those that worlds begin with: making an RSA key takes a second.
var commonSecrets = sync.OnceValues(func() ([]byte, error) {
	return machineconfig.NewSecrets(&clusterconfig.Cluster{Name: "sandbox", Talos: clusterconfig.Talos{Version: "v1.13.9"}})
})

func (w *world) use(secrets []byte, err error) {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
	if w.bundle, err = machineconfig.ParseSecrets(secrets); err != nil {
		w.t.Fatal(err)
	}
}

// renew makes new secrets, as for another cluster.
func (w *world) renew() {
	w.t.Helper()
	w.use(machineconfig.NewSecrets(w.cluster))
}

func (w *world) open() {
	w.t.Helper()
	fleet, err := sandbox.New(sandbox.Options{Profile: w.profile, Cluster: w, State: w.state, Port: w.port,
		Template: sandbox.Template{Talos: w.cluster.Talos.Version, Schematic: w.cluster.Talos.Schematic, Extensions: w.cluster.Talos.Extensions},
		Listen: func(at netip.AddrPort) (net.Listener, error) {
			return net.Listen("tcp", netip.AddrPortFrom(w.route(at.Addr()), at.Port()).String())
		}})
	if err != nil {
		w.t.Fatal(err)
	}
	w.fleet = fleet
}

// restart is a power cut of everything and a start from the disks.
func (w *world) restart() {
	w.t.Helper()
	if err := w.fleet.Close(); err != nil {
		w.t.Fatal(err)
	}
	w.open()
	w.powerOn()
}

func (w *world) vm(node clusterconfig.Node) sandbox.VM {
	return sandbox.VM{ID: node.VMID, Name: node.Name, Host: "pve", Address: netip.PrefixFrom(node.Address, 24),
		Gateway: w.cluster.Network.Gateway, Cores: 4, MemoryMiB: node.Memory, MAC: "bc:24:11:00:00:01", Bare: !w.cluster.MakesMachines()}
}

func (w *world) powerOn() {
	w.t.Helper()
	for _, node := range w.cluster.Nodes {
		if err := w.fleet.PowerOn(w.vm(node)); err != nil {
			w.t.Fatal(err)
		}
	}
}

// replace puts a blank machine in the place of a node, which does not leave etcd before.
func (w *world) replace(i int) {
	w.t.Helper()
	node := w.cluster.Nodes[i]
	if err := w.fleet.Removed(node.VMID); err != nil {
		w.t.Fatal(err)
	}
	if err := w.fleet.PowerOn(w.vm(node)); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) options() talos.Options {
	return talos.Options{Port: int(w.port), Poll: 50 * time.Millisecond, EtcdDeadline: 3 * time.Second, PullDeadline: 15 * time.Second, NodeDeadline: 20 * time.Second,
		LearnerGrace: 300 * time.Millisecond, NoopGrace: 300 * time.Millisecond, Silence: 2 * time.Second}
}

func (w *world) create() (talos.Report, time.Duration, error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	began := time.Now()
	report, err := talos.Up(ctx, w.cluster, w.bundle, w.options())
	return report, time.Since(began), err
}

func (w *world) mustCreate() (talos.Report, time.Duration) {
	w.t.Helper()
	report, took, err := w.create()
	if err != nil {
		w.t.Fatalf("up: %v (%+v)", err, report)
	}
	return report, took
}

func (w *world) dial() *talos.Access {
	w.t.Helper()
	access, err := talos.Dial(w.cluster, w.bundle, w.options())
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(access.Close)
	return access
}

// flood calls a machine until its log, which notes calls, holds nothing else, as some minutes of looking do.
func (w *world) flood(ctx context.Context, name string) {
	c, err := w.person(ctx, slices.IndexFunc(w.cluster.Nodes, func(node clusterconfig.Node) bool { return node.Name == name }))
	if err != nil {
		w.t.Error(err)
		return
	}
	defer c.Close()
	for range 2500 {
		if _, err := c.ServiceList(ctx); err != nil {
			return // the test is over
		}
	}
}

// disarm clears etcd's alarms, as talosctl does.
func (w *world) disarm() {
	w.t.Helper()
	c, err := w.person(w.t.Context(), 0)
	if err != nil {
		w.t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.EtcdAlarmDisarm(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
}

// person is an administrator's client of node number i.
func (w *world) person(ctx context.Context, i int) (*client.Client, error) {
	_, config, err := machineconfig.Configs(w.cluster, w.bundle)
	if err != nil {
		return nil, err
	}
	endpoint := net.JoinHostPort(w.cluster.Nodes[i].Address.String(), strconv.Itoa(int(w.port)))
	return client.New(ctx, client.WithConfig(config), client.WithEndpoints(endpoint))
}

// eventually waits for something that follows from what was done.
func (w *world) eventually(what string, condition func() bool) {
	w.t.Helper()
	deadline := time.Now().Add(10 * time.Second)
	for !condition() {
		if time.Now().After(deadline) {
			w.t.Fatalf("%s did not happen", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (w *world) ControlPlaneUp(_ context.Context, node sandbox.Node, config sandbox.ControlPlane) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.up[node.Name] = true
	if config.CA == nil || config.AggregatorCA == nil || config.EtcdCA == nil || len(config.ServiceAccountKey) == 0 || config.KubernetesVersion != "v1.36.2" {
		w.t.Errorf("the control plane of %s got an incomplete configuration", node.Name)
	}
	if w.api == nil {
		w.api = apiServer(w.t, config.CA, w.route(w.cluster.Endpoint))
	}
	return nil
}

func (w *world) ControlPlaneDown(node sandbox.Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.up, node.Name)
}

func (w *world) NodeUp(_ context.Context, node sandbox.Node) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.nodes[node.Name] = true
	return nil
}

func (w *world) NodeDown(node sandbox.Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.nodes, node.Name)
}

func (w *world) Pull(ctx context.Context, node sandbox.Node, image string) error {
	w.mu.Lock()
	pulls := w.pulls
	w.mu.Unlock()
	if pulls != nil {
		if err := pulls(ctx, image); err != nil {
			return err
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.local[node.Name] = append(w.local[node.Name], image)
	return nil
}

// pull says how pulls go from now on.
func (w *world) pull(how func(ctx context.Context, image string) error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pulls = how
}

// images are what a node has pulled beside what Talos runs by itself.
func (w *world) images(node string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(w.local[node]), talosRuns)
}

func talosRuns(image string) bool {
	return strings.HasPrefix(image, "ghcr.io/siderolabs/") || strings.HasPrefix(image, "registry.k8s.io/")
}

func (w *world) VIP(_ netip.Addr, holder *sandbox.Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	name := ""
	if holder != nil {
		name = holder.Name
	}
	w.vip = append(w.vip, name)
}

func (w *world) holders() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.vip)
}

func (w *world) holder() string {
	if all := w.holders(); len(all) > 0 {
		return all[len(all)-1]
	}
	return ""
}

func (w *world) controlPlanes() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.up)
}

func (w *world) kubelets() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.nodes)
}

// apiServer answers /readyz under the cluster's authority, to its administrators only.
func apiServer(t *testing.T, authority *sidero.PEMEncodedCertificateAndKey, address netip.Addr) *httptest.Server {
	signer, err := sidero.NewCertificateAuthorityFromCertificateAndKey(authority)
	if err != nil {
		t.Error(err)
		return nil
	}
	pair, err := sidero.NewKeyPair(signer, sidero.IPAddresses([]net.IP{address.AsSlice()}), sidero.NotBefore(time.Now().Add(-time.Minute)), sidero.NotAfter(time.Now().Add(time.Hour)))
	if err != nil {
		t.Error(err)
		return nil
	}
	signed := sidero.NewCertificateAndKeyFromKeyPair(pair)
	certificate, err := tls.X509KeyPair(signed.Crt, signed.Key)
	if err != nil {
		t.Error(err)
		return nil
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(authority.Crt)
	listener, err := net.Listen("tcp", net.JoinHostPort(address.String(), "0"))
	if err != nil {
		t.Error(err)
		return nil
	}
	server := &httptest.Server{Listener: listener, TLS: &tls.Config{Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients},
		Config: &http.Server{Handler: http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
			caller := request.TLS.PeerCertificates[0].Subject
			if request.URL.Path != "/readyz" || !slices.Contains(caller.Organization, "system:masters") {
				answer.WriteHeader(http.StatusForbidden)
				return
			}
			fmt.Fprint(answer, "ok")
		})}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

func homelab(t *testing.T, scale float64, faults ...string) profile.Profile {
	t.Helper()
	parsed, err := profile.ParseFaults(faults)
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range faults {
		tell.Fault(t, "%s", fault)
	}
	p, err := profile.New(profile.NameHomelab, scale, parsed)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func as[E error](t *testing.T, err error) E {
	t.Helper()
	var wanted E
	if !errors.As(err, &wanted) {
		t.Fatalf("the error is no %T: %v", wanted, err)
	}
	tell.Observation(t, 0, "%v", err)
	return wanted
}
