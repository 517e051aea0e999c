package talos_test

import (
	"tazlab.net/castle/ci/cluster/talos/machineconfig"

	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"tazlab.net/castle/ci/cluster/talos"
)

func TestTheQuorumIsWhatTheMembersSay(t *testing.T) {
	w := newWorld(t, homelab(t, 0))
	access := w.dial()
	ctx := context.Background()
	if quorum, err := access.EtcdQuorum(ctx); err == nil || quorum.Complete() {
		t.Errorf("machines that are off: %s, %v", quorum, err)
	}
	w.powerOn()
	w.mustCreate()
	quorum, err := access.EtcdQuorum(ctx)
	if err != nil || !quorum.Complete() {
		t.Fatalf("%s, %v", quorum, err)
	}
	if text := quorum.String(); text != "3 of 3 etcd members healthy, leader "+quorum.Leader {
		t.Errorf("it reads %q", text)
	}

	off := func(i int) {
		if err := w.fleet.PowerOff(w.cluster.Nodes[i].VMID); err != nil {
			t.Fatal(err)
		}
	}
	off(0)
	quorum, err = access.EtcdQuorum(ctx)
	if err != nil || quorum.Complete() || quorum.Healthy() != 2 || quorum.Leader == "sandbox-cp-1" || quorum.Leader == "" {
		t.Errorf("one of three is off: %s, %v", quorum, err)
	}
	off(1)
	quorum, err = access.EtcdQuorum(ctx)
	if err != nil || quorum.Complete() || quorum.Healthy() != 0 || quorum.Leader != "" {
		t.Errorf("two of three are off: %s, %v", quorum, err)
	}
	w.powerOn()
	w.eventually("the quorum", func() bool {
		quorum, err = access.EtcdQuorum(ctx)
		return err == nil && quorum.Complete()
	})
}

func TestTheStatusNamesStateAndServices(t *testing.T) {
	w := newWorld(t, homelab(t, 0))
	w.powerOn()
	access := w.dial()
	ctx := context.Background()
	w.eventually("maintenance mode", func() bool {
		return !slices.ContainsFunc(access.Status(ctx), func(s talos.NodeStatus) bool { return s.State != "maintenance" || s.Healthy() })
	})
	w.mustCreate()
	w.eventually("health", func() bool {
		return !slices.ContainsFunc(access.Status(ctx), func(s talos.NodeStatus) bool { return !s.Healthy() })
	})
	for _, status := range access.Status(ctx) {
		hasEtcd := slices.ContainsFunc(status.Services, func(s talos.Service) bool { return s.ID == "etcd" && s.State == "Running" })
		if hasEtcd != (status.Role == "controlplane") || status.Version != "v1.13.9" {
			t.Errorf("%+v", status)
		}
	}
	if err := w.fleet.PowerOff(525); err != nil {
		t.Fatal(err)
	}
	last := access.Status(ctx)[4]
	if last.State != "silent" || last.Healthy() {
		t.Errorf("a machine that is off: %+v", last)
	}
}

func TestTheKubeconfigOfTheMachinesAndOursHaveTheSameAuthority(t *testing.T) {
	w := newWorld(t, homelab(t, 0))
	w.powerOn()
	w.mustCreate()
	theirs, err := w.dial().Kubeconfig(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	kube, err := machineconfig.AdminKube(w.cluster, w.bundle, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	checkAdministrator(t, "ours", kube.Cert, kube.CA)
	parsed, err := clientcmd.Load(theirs)
	if err != nil {
		t.Fatal(err)
	}
	for _, cluster := range parsed.Clusters {
		if cluster.Server != kube.Host || cluster.Server != "https://"+w.cluster.Endpoint.String()+":6443" {
			t.Errorf("server %s", cluster.Server)
		}
		if !bytes.Equal(cluster.CertificateAuthorityData, kube.CA) {
			t.Error("they have another authority")
		}
	}
	for _, user := range parsed.AuthInfos {
		checkAdministrator(t, "theirs", user.ClientCertificateData, kube.CA)
	}
	if len(parsed.Clusters) != 1 || len(parsed.AuthInfos) != 1 {
		t.Errorf("%d clusters and %d users", len(parsed.Clusters), len(parsed.AuthInfos))
	}
}

func checkAdministrator(t *testing.T, name string, certificate, authority []byte) {
	t.Helper()
	block, _ := pem.Decode(certificate)
	if block == nil {
		t.Fatalf("%s: no PEM", name)
	}
	parsed, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(authority)
	if _, err := parsed.Verify(x509.VerifyOptions{Roots: roots, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
		t.Errorf("%s: %v", name, err)
	}
	if !slices.Contains(parsed.Subject.Organization, "system:masters") {
		t.Errorf("%s is for %s", name, parsed.Subject)
	}
}

// A proxy is not asked for loopback addresses, so the nodes of this test are declared at addresses that exist nowhere, and the
// proxy knows where the machines really listen.
func TestEverythingGoesThroughTheProxyOfTheEnvironment(t *testing.T) {
	w := newWorld(t, homelab(t, 0))
	real := map[netip.Addr]netip.Addr{}
	for i, node := range w.cluster.Nodes {
		public := netip.AddrFrom4([4]byte{198, 51, 100, byte(i + 1)})
		real[public] = node.Address
		w.cluster.Nodes[i].Address = public
	}
	endpoint := netip.MustParseAddr("198.51.100.200")
	real[endpoint], w.cluster.Endpoint = w.cluster.Endpoint, endpoint
	w.cluster.Network.Subnet = netip.MustParsePrefix("198.51.100.0/24")
	w.cluster.Network.Gateway = netip.MustParseAddr("198.51.100.254")
	w.route = func(a netip.Addr) netip.Addr { return real[a] }

	var tunnels atomic.Int32
	proxy := httptest.NewServer(http.HandlerFunc(func(answer http.ResponseWriter, request *http.Request) {
		target, err := netip.ParseAddrPort(request.Host)
		if request.Method != http.MethodConnect || err != nil {
			http.Error(answer, "only CONNECT", http.StatusBadRequest)
			return
		}
		server, err := net.Dial("tcp", netip.AddrPortFrom(real[target.Addr()], target.Port()).String())
		if err != nil {
			http.Error(answer, err.Error(), http.StatusBadGateway)
			return
		}
		client, _, err := answer.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		tunnels.Add(1)
		_, _ = io.WriteString(client, "HTTP/1.1 200 OK\r\n\r\n") // a broken client shows below
		go func() {
			_, _ = io.Copy(server, client)
			_ = server.Close()
		}()
		_, _ = io.Copy(client, server)
		_ = client.Close()
	}))
	t.Cleanup(proxy.CloseClientConnections)
	t.Setenv("HTTPS_PROXY", proxy.URL)
	t.Setenv("NO_PROXY", "")

	w.powerOn()
	report, _ := w.mustCreate()
	if !report.Quorum.Complete() {
		t.Errorf("quorum: %s", report.Quorum)
	}
	if tunnels.Load() < int32(len(w.cluster.Nodes)) {
		t.Errorf("%d connections went through the proxy", tunnels.Load())
	}
}

func TestTheTalosconfigOpensTheMachines(t *testing.T) {
	w := newWorld(t, homelab(t, 0))
	w.powerOn()
	w.mustCreate()
	_, config, err := machineconfig.Configs(w.cluster, w.bundle)
	if err != nil {
		t.Fatal(err)
	}
	entry := config.Contexts[config.Context]
	if strings.Join(entry.Endpoints, " ") != strings.Join([]string{w.cluster.Nodes[0].Address.String(), w.cluster.Nodes[1].Address.String(), w.cluster.Nodes[2].Address.String()}, " ") {
		t.Errorf("endpoints %s", entry.Endpoints)
	}
	decode := func(text string) []byte {
		data, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	pair, err := tls.X509KeyPair(decode(entry.Crt), decode(entry.Key))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(decode(entry.CA))
	connection, err := tls.Dial("tcp", netip.AddrPortFrom(w.cluster.Nodes[4].Address, w.port).String(), &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, NextProtos: []string{"h2"}})
	if err != nil {
		t.Fatal(err)
	}
	_ = connection.Close() // the handshake was the question
}
