//go:build linux

package services

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/miekg/dns"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"

	"tazlab.net/castle/ci/base/porttest"
)

// cluster is a proxy that follows an API server made of nothing but objects.
type cluster struct {
	t      *testing.T
	client kubernetes.Interface
	proxy  *Proxy
	hold   atomic.Bool // what Holds answers

	mu     sync.Mutex
	local  map[netip.Addr]bool
	served []string
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	return newClusterWith(t, false)
}

func newClusterWith(t *testing.T, kubeProxy bool) *cluster {
	t.Helper()
	c := &cluster{t: t, client: fake.NewClientset(), local: map[netip.Addr]bool{}}
	c.proxy = New(Options{
		Log:   slog.New(slog.NewTextHandler(t.Output(), nil)),
		Holds: func(netip.Addr) bool { return c.hold.Load() },
		Local: func(address netip.Addr, local bool) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.local[address] = local
			return nil
		},
		Serves: func(namespace, name string, _ time.Time) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.served = append(c.served, namespace+"/"+name)
		},
		KubeProxy: kubeProxy,
	})
	t.Cleanup(c.proxy.Close)
	factory := informers.NewSharedInformerFactory(c.client, 0)
	if err := c.proxy.Connect(factory); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	factory.Start(ctx.Done())
	t.Cleanup(func() { cancel(); factory.Shutdown() })
	factory.WaitForCacheSync(ctx.Done())
	return c
}

// answering listens and accepts.
func answering(t *testing.T) *net.TCPAddr {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.Close()
		}
	}()
	return listener.Addr().(*net.TCPAddr)
}

func service(name, address string, port int32) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "apps"},
		Spec:       corev1.ServiceSpec{ClusterIP: address, ClusterIPs: []string{address}, Ports: []corev1.ServicePort{{Port: port}}},
	}
}

func endpoints(of string, at *net.TCPAddr, ready bool) *discoveryv1.EndpointSlice {
	port := int32(at.Port)
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: of, Namespace: "apps", Labels: map[string]string{discoveryv1.LabelServiceName: of}},
		AddressType: discoveryv1.AddressTypeIPv4, Ports: []discoveryv1.EndpointPort{{Port: &port}},
		Endpoints: []discoveryv1.Endpoint{{Addresses: []string{at.IP.String()}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}}},
	}
}

func (c *cluster) create(service *corev1.Service, slice *discoveryv1.EndpointSlice) {
	c.t.Helper()
	if _, err := c.client.CoreV1().Services(service.Namespace).Create(c.t.Context(), service, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
	if slice == nil {
		return
	}
	if _, err := c.client.DiscoveryV1().EndpointSlices(slice.Namespace).Create(c.t.Context(), slice, metav1.CreateOptions{}); err != nil {
		c.t.Fatal(err)
	}
}

// eventually dials until the outcome is the wanted one, nil for an answer.
func (c *cluster) eventually(address string, port int32, want error) {
	c.t.Helper()
	var err error
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		var conn net.Conn
		if conn, err = net.Dial("tcp4", net.JoinHostPort(address, fmt.Sprint(port))); err == nil {
			conn.Close()
		}
		if errors.Is(err, want) {
			return
		}
	}
	c.t.Fatalf("%s:%d: %v, want %v", address, port, err, want)
}

func TestAServiceAnswersWhileAnEndpointIsReady(t *testing.T) {
	c := newCluster(t)
	port, at := int32(porttest.Free(t, "127.0.0.1")), answering(t)
	c.create(service("web", "127.10.0.1", port), endpoints("web", at, false))
	c.eventually("127.10.0.1", port, syscall.ECONNREFUSED)
	slices := c.client.DiscoveryV1().EndpointSlices("apps")
	if _, err := slices.Update(t.Context(), endpoints("web", at, true), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.eventually("127.10.0.1", port, nil)
	if _, err := slices.Update(t.Context(), endpoints("web", at, false), metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	c.eventually("127.10.0.1", port, syscall.ECONNREFUSED)
}

func TestAWebhookRefusesWhileItIsHeldAlthoughItsEndpointIsReady(t *testing.T) {
	c := newCluster(t)
	c.hold.Store(true)
	hook, plain, at := int32(porttest.Free(t, "127.0.0.1")), int32(porttest.Free(t, "127.0.0.1")), answering(t)
	_, err := c.client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Create(t.Context(), &admissionv1.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: "hook"},
		Webhooks: []admissionv1.ValidatingWebhook{{
			Name: "hook.example.org", ClientConfig: admissionv1.WebhookClientConfig{Service: &admissionv1.ServiceReference{Namespace: "apps", Name: "hook"}},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c.create(service("hook", "127.10.0.2", hook), endpoints("hook", at, true))
	c.create(service("plain", "127.10.0.3", plain), endpoints("plain", at, true))
	c.eventually("127.10.0.3", plain, nil)
	c.eventually("127.10.0.2", hook, syscall.ECONNREFUSED)
	c.hold.Store(false)
	c.proxy.Changed()
	c.eventually("127.10.0.2", hook, nil)
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(c.served, []string{"apps/hook"}) {
		t.Errorf("said to serve: %v", c.served)
	}
}

// speaker has a pod of MetalLB's speaker run, or waits for its image.
func (c *cluster) speaker(phase corev1.PodPhase) {
	c.t.Helper()
	c.pod("metallb-system", "speaker", map[string]string{"app.kubernetes.io/name": "metallb", "app.kubernetes.io/component": "speaker"}, phase)
}

func (c *cluster) pod(namespace, name string, labels map[string]string, phase corev1.PodPhase) {
	c.t.Helper()
	pods := c.client.CoreV1().Pods(namespace)
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Status: corev1.PodStatus{Phase: phase}}
	_, err := pods.UpdateStatus(c.t.Context(), pod, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		_, err = pods.Create(c.t.Context(), pod, metav1.CreateOptions{})
	}
	if err != nil {
		c.t.Fatal(err)
	}
}

// balanced is the Service web, of type LoadBalancer, at an address of its own and one that it was given, with an endpoint that answers.
func (c *cluster) balanced(own, given string, port int32) {
	c.t.Helper()
	web := service("web", own, port)
	web.Spec.Type = corev1.ServiceTypeLoadBalancer
	web.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: given}}
	c.create(web, endpoints("web", answering(c.t), true))
}

func TestNoServiceIsCarriedWithoutKubeProxy(t *testing.T) {
	c := newClusterWith(t, true)
	kubeProxy := func(phase corev1.PodPhase) {
		c.pod(metav1.NamespaceSystem, "kube-proxy-1", map[string]string{"k8s-app": "kube-proxy"}, phase)
	}
	kubeProxy(corev1.PodPending)
	port := int32(porttest.Free(t, "127.0.0.1"))
	c.create(service("web", "127.10.0.10", port), endpoints("web", answering(t), true))
	c.eventually("127.10.0.10", port, syscall.ECONNREFUSED)
	kubeProxy(corev1.PodRunning)
	c.eventually("127.10.0.10", port, nil)
	kubeProxy(corev1.PodPending)
	c.eventually("127.10.0.10", port, syscall.ECONNREFUSED)
}

func TestNobodyAnswersForALoadBalancerWithoutASpeaker(t *testing.T) {
	c := newCluster(t)
	c.speaker(corev1.PodPending)
	port := int32(porttest.Free(t, "127.0.0.1"))
	c.balanced("127.10.0.8", "127.10.0.9", port)
	c.eventually("127.10.0.8", port, nil)
	c.eventually("127.10.0.9", port, syscall.ECONNREFUSED)
	c.speaker(corev1.PodRunning)
	c.eventually("127.10.0.9", port, nil)
}

func TestTheAddressOfALoadBalancerIsLocalWhileItHasIt(t *testing.T) {
	c := newCluster(t)
	c.speaker(corev1.PodRunning)
	port := int32(porttest.Free(t, "127.0.0.1"))
	c.balanced("127.10.0.4", "127.10.0.5", port)
	c.eventually("127.10.0.5", port, nil)
	if err := c.client.CoreV1().Services("apps").Delete(t.Context(), "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	c.eventually("127.10.0.5", port, syscall.ECONNREFUSED)
	c.mu.Lock()
	defer c.mu.Unlock()
	if local, known := c.local[netip.MustParseAddr("127.10.0.5")]; local || !known {
		t.Errorf("local: %v", c.local)
	}
}

// coreDNS is the Service of the cluster's DNS, with a pod that is ready or not.
func (c *cluster) coreDNS(ready bool) (of *corev1.Service, pods *discoveryv1.EndpointSlice) {
	c.t.Helper()
	of, pods = service(DNSService, "10.96.0.10", 53), endpoints(DNSService, &net.TCPAddr{IP: net.IPv4(10, 244, 0, 7), Port: 53}, ready)
	of.Namespace, pods.Namespace = metav1.NamespaceSystem, metav1.NamespaceSystem
	c.create(of, pods)
	return of, pods
}

func TestTheDNSRefusesWithoutAPodOfCoreDNS(t *testing.T) {
	c := newCluster(t)
	c.create(service("web", "127.10.0.6", int32(porttest.Free(t, "127.0.0.1"))), nil)
	port := int32(porttest.Free(t, "127.0.0.1"))
	t.Cleanup(ServeDNS(c.proxy, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port)), "cluster.local").Close)
	_, pods := c.coreDNS(false)
	ask := func(ready bool, want error) {
		t.Helper()
		pods.Endpoints[0].Conditions.Ready = &ready
		if _, err := c.client.DiscoveryV1().EndpointSlices(metav1.NamespaceSystem).Update(t.Context(), pods, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		c.eventually("127.0.0.1", port, want)
		_, _, err := new(dns.Client).Exchange(new(dns.Msg).SetQuestion("web.apps.svc.cluster.local.", dns.TypeA), fmt.Sprintf("127.0.0.1:%d", port))
		if !errors.Is(err, want) {
			t.Errorf("ready %t, by UDP: %v, want %v", ready, err, want)
		}
	}
	ask(false, syscall.ECONNREFUSED)
	ask(true, nil)
	ask(false, syscall.ECONNREFUSED)
}

func TestDNSKnowsServicesAndNothingElse(t *testing.T) {
	c := newCluster(t)
	c.create(service("web", "127.10.0.6", int32(porttest.Free(t, "127.0.0.1"))), nil)
	headless := service("db", corev1.ClusterIPNone, int32(porttest.Free(t, "127.0.0.1")))
	c.create(headless, endpoints("db", &net.TCPAddr{IP: net.IPv4(10, 244, 0, 9), Port: 5432}, true))
	port := int32(porttest.Free(t, "127.0.0.1"))
	t.Cleanup(ServeDNS(c.proxy, netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port)), "cluster.local").Close)
	c.coreDNS(true)
	c.eventually("127.0.0.1", port, nil)
	type answer struct {
		code    int
		address string
	}
	for name, want := range map[string]answer{
		"web.apps.svc.cluster.local.":   {dns.RcodeSuccess, "127.10.0.6"},
		"WEB.apps.svc.cluster.local.":   {dns.RcodeSuccess, "127.10.0.6"},
		"db.apps.svc.cluster.local.":    {dns.RcodeSuccess, "10.244.0.9"},
		"web.other.svc.cluster.local.":  {dns.RcodeNameError, ""},
		"web.apps.svc.":                 {dns.RcodeNameError, ""},
		"example.org.":                  {dns.RcodeNameError, ""},
		"x.web.apps.svc.cluster.local.": {dns.RcodeNameError, ""},
	} {
		for _, network := range []string{"udp", "tcp"} {
			var got answer
			for range 100 { // until the informers have seen the Services
				reply, _, err := (&dns.Client{Net: network}).Exchange(new(dns.Msg).SetQuestion(name, dns.TypeA), fmt.Sprintf("127.0.0.1:%d", port))
				if err != nil {
					t.Fatal(err)
				}
				got = answer{code: reply.Rcode}
				if len(reply.Answer) == 1 {
					got.address = reply.Answer[0].(*dns.A).A.String()
				}
				if got == want {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			if got != want {
				t.Errorf("%s by %s: %+v, want %+v", name, network, got, want)
			}
		}
	}
	reply, _, err := new(dns.Client).Exchange(new(dns.Msg).SetQuestion("web.apps.svc.cluster.local.", dns.TypeAAAA), fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil || reply.Rcode != dns.RcodeSuccess || len(reply.Answer) != 0 {
		t.Errorf("an IPv6 address of a Service without one: %v, %v", reply, err)
	}
}
