package gates

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/util/cert"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/test/kubetest"
	"tazlab.net/castle/ci/test/tell"
)

// address is a virtual IP, or an API server, that answers when told to.
type address struct {
	*httptest.Server
	answers atomic.Bool
	asked   atomic.Int32
	began   atomic.Pointer[tls.Certificate] // what it shows to who asks since when it runs; nil: nothing
}

func pemOf(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

func newAddress(t *testing.T) *address {
	a := &address{}
	a.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS.ServerName == loopbackName {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		a.asked.Add(1)
		if !a.answers.Load() {
			http.Error(w, "[+]ping ok\n[-]etcd failed: reason withheld\nreadyz check failed", http.StatusInternalServerError)
		}
	}))
	a.TLS = &tls.Config{GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if hello.ServerName == loopbackName {
			return a.began.Load(), nil
		}
		return nil, nil
	}}
	a.Config.ErrorLog = log.New(io.Discard, "", 0)
	a.StartTLS()
	t.Cleanup(a.Close)
	return a
}

// runs has it say for how long its process has run.
func (a *address) runs(t *testing.T, age time.Duration) *address {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: fmt.Sprintf("apiserver-loopback-client@%d", time.Now().Add(-age).Unix())}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	a.began.Store(&tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key})
	return a
}

func (a *address) kube(t *testing.T) *kube.Client {
	t.Helper()
	client, err := kube.Connect(a.URL, pemOf(a.Certificate().Raw), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// vipOf is the condition that the gate of the layer platform has for the virtual IP and the API servers, asked of other addresses and faster.
func vipOf(t *testing.T, a *address, servers ...apiServer) Condition {
	t.Helper()
	for _, condition := range platform(Env{Kube: a.kube(t), Cluster: sandbox(), Talos: &etcd{}, Scaled: true}) {
		if vip, is := condition.Waiter.(steady); is {
			vip.URL, vip.Servers, vip.Every = a.URL+"/readyz", servers, 20*time.Millisecond
			condition.Waiter = vip
			return condition
		}
	}
	t.Fatal("the gate does not look at the virtual IP")
	return Condition{}
}

func TestAnAddressThatAnswersOnceIsNotSteady(t *testing.T) {
	vip := newAddress(t)
	wait := begin(t, time.Minute, vipOf(t, vip))
	wait.Sees("0 of 8 answers in a row; last failure 500 Internal Server Error, etcd failed")
	vip.answers.Store(true)
	wait.Sees("2 of 8 answers in a row")
	tell.Fault(t, "the virtual IP answers for a moment, and then not")
	vip.answers.Store(false)
	wait.Sees("0 of 8 answers in a row")
	wait.StaysShut(200 * time.Millisecond)

	before := vip.asked.Load()
	vip.answers.Store(true)
	wait.Opens()
	if asked := vip.asked.Load() - before; asked < 8 {
		t.Errorf("steady after %d answers, want 8", asked)
	}
}

func TestTheAddressOfRealMachinesIsSteadyAfterFifteenSeconds(t *testing.T) {
	for want, env := range map[time.Duration]Env{15 * time.Second: {}, 2 * time.Second: {Scaled: true}} {
		env.Kube, env.Cluster, env.Talos = newAddress(t).kube(t), sandbox(), &etcd{}
		for _, condition := range platform(env) {
			if vip, is := condition.Waiter.(steady); is && time.Duration(vip.Times)*vip.Every != want {
				t.Errorf("%d answers, one every %s, want %s", vip.Times, vip.Every, want)
			}
		}
	}
}

func TestTheRowIsShortWhereAllAPIServersHaveRunForAWhile(t *testing.T) {
	for env, want := range map[Env]time.Duration{{}: time.Minute, {Scaled: true}: 8 * time.Second, {LookOnly: true}: time.Minute} {
		if got := settledAfter(env); got != want {
			t.Errorf("%+v: they have settled after %s, want %s", env, got, want)
		}
	}
	const old, young = time.Hour, 5 * time.Second
	for _, test := range []struct {
		name string
		ages []time.Duration // 0: it does not tell
		want int32
		says string
	}{
		{"all are old", []time.Duration{old, 2 * old}, 3, "3 answers in a row, and each API server has run for 1h0m"},
		{"one has restarted", []time.Duration{old, young}, 8, "3 of 8 answers in a row; the API server of cp-2 has run for "},
		{"one does not tell", []time.Duration{0, old}, 8, "3 of 8 answers in a row; the API server of cp-1 does not tell for how long it has run"},
		{"there is none to ask", nil, 8, "3 of 8 answers in a row; there is no API server to ask"},
	} {
		t.Run(test.name, func(t *testing.T) {
			vip := newAddress(t)
			vip.answers.Store(true)
			var servers []apiServer
			for i, age := range test.ages {
				server := newAddress(t)
				server.answers.Store(true)
				if age > 0 {
					server.runs(t, age)
				}
				servers = append(servers, apiServer{fmt.Sprintf("cp-%d", i+1), server.URL})
			}
			wait := begin(t, time.Minute, vipOf(t, vip, servers...))
			wait.Sees(test.says)
			wait.Opens()
			if asked := vip.asked.Load(); asked != test.want {
				t.Errorf("steady after %d looks, want %d", asked, test.want)
			}
		})
	}
}

// What has failed is no cluster that was at rest, for however long its API servers have run.
func TestTheRowIsNotShortAfterALookThatFailed(t *testing.T) {
	vip, server := newAddress(t), newAddress(t).runs(t, time.Hour)
	server.answers.Store(true)
	wait := begin(t, time.Minute, vipOf(t, vip, apiServer{"cp-1", server.URL}))
	wait.Sees("0 of 8 answers in a row")
	before := vip.asked.Load()
	vip.answers.Store(true)
	wait.Opens()
	if asked := vip.asked.Load() - before; asked < 8 {
		t.Errorf("steady after %d answers, want 8", asked)
	}
}

// The certificate is made here by the library with which API servers make theirs.
func TestAnAPIServerTellsByItsCertificateSinceWhenItRuns(t *testing.T) {
	certificate, key, err := cert.GenerateSelfSignedCertKey(loopbackName, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	server := newAddress(t)
	server.began.Store(&pair)
	age, told := runningFor(t.Context(), introducer(server.kube(t).Config()), server.URL)
	if !told || age < 0 || age > time.Minute {
		t.Errorf("it has run for %s, %v", age, told)
	}
}

func TestTheAPIServerOfEachControlPlaneIsWaitedFor(t *testing.T) {
	cluster := sandbox()
	cluster.Nodes = []config.Node{{Name: "cp-1", Role: config.RoleControlPlane, Address: netip.MustParseAddr("192.0.2.11")}, {Name: "worker-1", Role: config.RoleWorker}}
	if got := apiServersOf(cluster); len(got) != 1 || got[0] != (apiServer{"cp-1", "https://192.0.2.11:6443/readyz?verbose"}) {
		t.Fatalf("looked at are %v", got)
	}
	vip, first, second := newAddress(t), newAddress(t), newAddress(t)
	vip.answers.Store(true)
	first.answers.Store(true)
	wait := begin(t, time.Minute, vipOf(t, vip, apiServer{"cp-1", first.URL}, apiServer{"cp-2", second.URL}))
	wait.Sees("0 of 8 answers in a row; last failure 1 of 2 ready; cp-2: 500 Internal Server Error, etcd failed")
	second.answers.Store(true)
	wait.Sees("2 of 8 answers in a row")
	tell.Fault(t, "an API server that was ready restarts while the virtual IP is another one's")
	first.answers.Store(false)
	wait.Sees("0 of 8 answers in a row; last failure 1 of 2 ready; cp-1: 500 Internal Server Error, etcd failed")
	wait.StaysShut(400 * time.Millisecond)
	first.answers.Store(true)
	wait.Opens()
}

func TestAForeignCertificateEndsTheWaitAfterItsGrace(t *testing.T) {
	vip, other := newAddress(t), kubetest.NewCA(t)
	client, err := kube.Connect(vip.URL, other, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	client.Grace = 300 * time.Millisecond
	started := time.Now()
	err = begin(t, time.Minute, Condition{"virtual IP", steady{Kube: client, URL: vip.URL, Times: 3, Every: 20 * time.Millisecond}, "talosctl"}).Fails()
	if _, ok := errors.AsType[*Impossible](err); !ok || !strings.Contains(err.Error(), "does another cluster hold the address") {
		t.Errorf("the error is %T %v, want an *Impossible that names the cause", err, err)
	}
	if took := time.Since(started); took < client.Grace {
		t.Errorf("gave up after %s, before its grace", took)
	}
}

// etcd is what Talos would see of it.
type etcd struct {
	mutex   sync.Mutex
	summary string
	ok      bool
	err     error
}

func (e *etcd) EtcdQuorum(context.Context) (string, bool, error) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.summary, e.ok, e.err
}

func (e *etcd) becomes(summary string, ok bool, err error) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.summary, e.ok, e.err = summary, ok, err
}

func TestEtcdIsAskedUntilItHasAQuorum(t *testing.T) {
	members := &etcd{err: errors.New("connection refused")}
	wait := begin(t, time.Minute, Condition{"etcd quorum", etcdQuorum(members), ""})
	wait.Sees("connection refused")
	members.becomes("1 of 3 members", false, nil)
	wait.Sees("1 of 3 members")
	members.becomes("3 of 3 members, leader a", true, nil)
	wait.Opens()
}

func TestThePlatformGateWaitsForEveryDeclaredNode(t *testing.T) {
	server := shared.Server(t)
	client := connect(t, server)
	wait := begin(t, time.Minute, Condition{"nodes", nodesReady(client, []string{"cp-1", "worker-1"}), ""})
	node := func(name, ready string) {
		server.Put(kube.Nodes, `{apiVersion: v1, kind: Node, metadata: {name: `+name+`}, status: {conditions: [{type: Ready, status: "`+ready+`", reason: KubeletNotReady, message: no network}]}}`)
		t.Cleanup(func() { server.Delete(kube.Nodes, "", name) })
	}
	wait.Sees("0 of 2 ready; cp-1: not registered yet; worker-1: not registered yet")
	node("stranger", "True")
	node("cp-1", "True")
	wait.Sees("1 of 2 ready; worker-1: not registered yet")
	server.Put(kube.Nodes, `{apiVersion: v1, kind: Node, metadata: {name: worker-1}, status: {conditions: [{type: Ready, status: "False", reason: KubeletNotReady, message: no network}]}}`)
	wait.Sees("1 of 2 ready; worker-1: Ready is False: KubeletNotReady: no network")
	node("worker-1", "True")
	wait.Opens()
}

func TestThePlatformGateWaitsForAPodOfCoreDNS(t *testing.T) {
	server := shared.Server(t)
	client := connect(t, server)
	const node = `{apiVersion: v1, kind: Node, metadata: {name: cp-1}, status: {conditions: [{type: Ready, status: "%s", reason: KubeletNotReady, message: no network}]}}`
	server.Put(kube.Nodes, fmt.Sprintf(node, "False"))
	t.Cleanup(func() { server.Delete(kube.Nodes, "", "cp-1") })
	dns := Condition{"DNS", dnsServes(client, nodesReady(client, []string{"cp-1"})), ""}
	wait := begin(t, time.Minute, dns)
	wait.Sees("nodes: 0 of 1 ready; cp-1: Ready is False: KubeletNotReady: no network")
	server.Put(kube.Nodes, fmt.Sprintf(node, "True"))
	wait.Opens() // CoreDNS is disabled

	deployment := func(available string) {
		server.Put(kube.Deployments, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: coredns, namespace: kube-system},
			spec: {replicas: 2, selector: {matchLabels: {k8s-app: kube-dns}}, template: {metadata: {labels: {k8s-app: kube-dns}}, spec: {containers: [{name: coredns, image: "coredns:1"}]}}},
			status: {conditions: [{type: Available, status: "`+available+`", reason: MinimumReplicas, message: of two}]}}`)
	}
	deployment("False")
	t.Cleanup(func() { server.Delete(kube.Deployments, "kube-system", "coredns") })
	wait = begin(t, time.Minute, dns)
	wait.Sees("Available is False: MinimumReplicas: of two")
	deployment("True")
	wait.Opens()
}

func TestTheAPIIsReadyWhenItSaysSo(t *testing.T) {
	begin(t, 10*time.Second, Condition{"API", apiReady(connect(t, shared.Server(t))), ""}).Opens()
}

func TestAGateSaysWhatItLacks(t *testing.T) {
	_, err := Conditions("platform", Env{})
	for _, part := range []string{"gate platform", "Kubernetes", "description", "Talos nodes"} {
		if part == "Kubernetes" {
			part = "cluster's API"
		}
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("the error lacks %q: %v", part, err)
		}
	}
	client, err := kube.Connect("https://192.0.2.1:6443", nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for gate, says := range map[string]string{"networking": "loadBalancer: none", "storage": "storage: none"} {
		if _, err := Conditions(gate, Env{Kube: client, Cluster: &config.Cluster{}}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("the gate of a layer that the cluster does without: %v", err)
		}
	}
	if _, err := Conditions("networkin", Env{}); err == nil || !strings.Contains(err.Error(), "networking-webhook") {
		t.Errorf("an unknown gate does not name those that there are: %v", err)
	}
}

func TestEveryGateHasRowsThatSayWhereToLook(t *testing.T) {
	client, err := kube.Connect("https://192.0.2.1:6443", nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	env := Env{Kube: client, Talos: &etcd{}, Cluster: sandbox()}
	for _, name := range Names() {
		conditions, err := Conditions(name, env)
		if err != nil || len(conditions) == 0 {
			t.Errorf("gate %s: %d conditions, %v", name, len(conditions), err)
		}
		seen := map[string]bool{}
		for _, condition := range conditions {
			if seen[condition.Name] || condition.Next == "" {
				t.Errorf("gate %s: %q is there twice or does not say where to look", name, condition.Name)
			}
			seen[condition.Name] = true
		}
	}
}

func TestALookCreatesNothing(t *testing.T) {
	client, err := kube.Connect("https://192.0.2.1:6443", nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range Names() {
		conditions, err := Conditions(name, Env{Kube: client, Talos: &etcd{}, Cluster: sandbox(), LookOnly: true})
		if err != nil || len(conditions) == 0 {
			t.Errorf("gate %s: %d conditions, %v", name, len(conditions), err)
		}
		for _, condition := range conditions {
			if _, creates := condition.Waiter.(loadBalancer); creates {
				t.Errorf("gate %s creates a Service", name)
			}
		}
	}
}

func sandbox() *config.Cluster {
	return &config.Cluster{
		Endpoint:     netip.MustParseAddr("192.0.2.1"),
		Storage:      config.Storage{StorageClass: "longhorn"},
		LoadBalancer: config.LoadBalancer{Pool: []string{"192.0.2.0/24"}},
	}
}
