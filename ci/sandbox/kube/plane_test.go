//go:build linux

package kube

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"tazlab.net/castle/ci/sandbox/kube/services"
	"tazlab.net/castle/ci/sandbox/profile"
)

// What Talos gives a control plane that takes no pods.
var (
	controlLabels = map[string]string{"node-role.kubernetes.io/control-plane": "", "node.kubernetes.io/exclude-from-external-load-balancers": ""}
	controlTaints = map[string]string{"node-role.kubernetes.io/control-plane": ":NoSchedule"}
)

var (
	vip = netip.MustParseAddr("192.168.77.210")
	cp1 = Node{Name: "cp-1", Address: netip.MustParseAddr("192.168.77.211"), Labels: controlLabels, Taints: controlTaints, Cores: 4, Memory: 8192}
	cp2 = Node{Name: "cp-2", Address: netip.MustParseAddr("192.168.77.212"), Labels: controlLabels, Taints: controlTaints, Cores: 4, Memory: 8192}
	wk1 = Node{Name: "worker-1", Address: netip.MustParseAddr("192.168.77.214"), Cores: 4, Memory: 16384}
)

// newBundle makes the cluster's secrets once: one of the keys takes seconds.
var newBundle = sync.OnceValues(func() (*secrets.Bundle, error) {
	return secrets.NewBundle(secrets.NewClock(), config.TalosVersionCurrent)
})

// world is a plane and what a Talos cluster would tell it.
type world struct {
	*Plane
	t       *testing.T
	options Options
	config  Config
}

func newWorld(t *testing.T, images map[string]string, p profile.Profile) *world {
	t.Helper()
	w := describe(t, images, p)
	w.power()
	t.Cleanup(func() {
		w.Close()
		if t.Failed() {
			w.keepLogs()
		}
	})
	return w
}

// describe says what a world is made of, before it has power.
func describe(t *testing.T, images map[string]string, p profile.Profile) *world {
	t.Helper()
	found := programs(t, "etcd", "kubernetes")
	bundle, err := newBundle()
	if err != nil {
		t.Fatal(err)
	}
	certs := bundle.Certs
	w := &world{t: t, config: Config{
		VIP: vip, PodSubnet: netip.MustParsePrefix("10.244.0.0/16"), ServiceSubnet: netip.MustParsePrefix("10.96.0.0/16"),
		SecretboxSecret: bundle.Secrets.SecretboxEncryptionSecret,
		PKI: PKI{
			ClusterCA:         certs.K8s,
			AggregatorCA:      certs.K8sAggregator,
			EtcdCA:            certs.Etcd,
			ServiceAccountKey: certs.K8sServiceAccount.Key,
		},
	}}
	w.options = Options{
		Folder: t.TempDir(), Profile: p, KubernetesVersion: "v1.36.4", OSImage: "Talos (v1.13.9)",
		Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Binaries: Binaries{
			Etcd: found["etcd"], APIServer: found["kube-apiserver"], ControllerManager: found["kube-controller-manager"],
			Scheduler: found["kube-scheduler"], Images: images,
		},
	}
	return w
}

// power makes a new plane on the folder, as the next power-on does.
func (w *world) power() {
	w.t.Helper()
	plane, err := New(w.options)
	if err != nil {
		w.t.Fatal(err)
	}
	w.Plane = plane
}

func (w *world) keepLogs() {
	folder := os.Getenv("CASTLE_KEEP_LOGS")
	if folder == "" {
		return
	}
	if err := os.CopyFS(filepath.Join(folder, strings.ReplaceAll(w.t.Name(), "/", "-")), os.DirFS(w.options.Folder)); err != nil {
		w.t.Log(err)
	}
}

func (w *world) controlPlaneUp(n Node) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	start := time.Now()
	if err := w.ControlPlaneUp(ctx, n.Name, n.Address, w.config); err != nil {
		w.t.Fatal(err)
	}
	w.t.Logf("control plane %s up after %s", n.Name, time.Since(start).Round(time.Millisecond))
}

// start brings up one control plane with the virtual IP, and one worker.
func (w *world) start() kubernetes.Interface {
	w.t.Helper()
	w.controlPlaneUp(cp1)
	if err := w.VIP(cp1.Name); err != nil {
		w.t.Fatal(err)
	}
	if err := w.network.AddAddress(wk1.Address); err != nil { // the machine itself has it
		w.t.Fatal(err)
	}
	w.NodeUp(cp1)
	w.NodeUp(wk1)
	client := w.client()
	w.nodesReady(client, 2)
	w.takesPods(client, "default")
	return client
}

// takesPods waits for the account that the pods of the namespace run as: the controller manager makes it some time after its namespace, and until then
// the API server forbids them.
func (w *world) takesPods(client kubernetes.Interface, namespace string) {
	w.t.Helper()
	w.eventually(time.Minute, "the account that pods in "+namespace+" run as", func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(namespace).Get(ctx, "default", metav1.GetOptions{})
		return err
	})
}

// client is an administrator's through the virtual IP.
func (w *world) client() kubernetes.Interface {
	w.t.Helper()
	data, err := w.Kubeconfig()
	if err != nil {
		w.t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(data)
	if err != nil {
		w.t.Fatal(err)
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		w.t.Fatal(err)
	}
	return client
}

func (w *world) nodesReady(client kubernetes.Interface, want int) {
	w.t.Helper()
	w.eventually(time.Minute, fmt.Sprintf("%d nodes are ready", want), func(ctx context.Context) error {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		ready := 0
		for _, n := range nodes.Items {
			if nodeReady(&n) == corev1.ConditionTrue {
				ready++
			}
		}
		if ready != want {
			return fmt.Errorf("%d are", ready)
		}
		return nil
	})
}

func nodeReady(n *corev1.Node) corev1.ConditionStatus {
	for _, condition := range n.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status
		}
	}
	return ""
}

// eventually asks until there is no error; with the time it took.
func (w *world) eventually(within time.Duration, what string, ask func(context.Context) error) time.Duration {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), within)
	defer cancel()
	start := time.Now()
	for {
		err := ask(ctx)
		if err == nil {
			took := time.Since(start)
			w.t.Logf("%s: after %s", what, took.Round(time.Millisecond))
			return took
		}
		select {
		case <-ctx.Done():
			w.t.Fatalf("not within %s: %s: %v", within, what, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func (w *world) available(client kubernetes.Interface, namespace, name string, within time.Duration) time.Duration {
	w.t.Helper()
	return w.eventually(within, "Deployment "+name+" is available", func(ctx context.Context) error {
		deployment, err := client.AppsV1().Deployments(namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		status := deployment.Status
		if status.ObservedGeneration < deployment.Generation || status.AvailableReplicas != *deployment.Spec.Replicas || status.Replicas != *deployment.Spec.Replicas {
			return fmt.Errorf("%d of %d available", status.AvailableReplicas, *deployment.Spec.Replicas)
		}
		return nil
	})
}

func deployment(name, image string, replicas int32) *appsv1.Deployment {
	labels := map[string]string{"app": name}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app", Image: image}}},
			},
		},
	}
}

// coreDNS has the cluster's DNS, which Talos brings: pods, and the Service that leads to them.
func (w *world) coreDNS(client kubernetes.Interface) {
	w.t.Helper()
	pods, labels := deployment("coredns", "coredns:1", 2), map[string]string{"k8s-app": "kube-dns"}
	pods.Spec.Selector.MatchLabels, pods.Spec.Template.Labels = labels, labels
	if _, err := client.AppsV1().Deployments(metav1.NamespaceSystem).Create(w.t.Context(), pods, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	service := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: services.DNSService},
		Spec:       corev1.ServiceSpec{ClusterIP: w.config.dns().String(), Selector: labels, Ports: []corev1.ServicePort{{Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP}}},
	}
	if _, err := client.CoreV1().Services(metav1.NamespaceSystem).Create(w.t.Context(), service, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.available(client, metav1.NamespaceSystem, "coredns", 30*time.Second)
}

func quick(t *testing.T, faults profile.Faults) profile.Profile {
	t.Helper()
	p, err := profile.New(profile.NameHomelab, 0.02, faults)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestAPlaneComesUpAgainWithWhatItHad(t *testing.T) {
	w := newWorld(t, nil, quick(t, nil))
	client := w.start()
	ctx := t.Context()
	if _, err := client.AppsV1().Deployments("default").Create(ctx, deployment("blog", "registry.example/blog:1", 2), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.available(client, "default", "blog", 30*time.Second)
	before := addresses(t, client)

	w.Close()
	w.power()
	w.controlPlaneUp(cp2)
	if err := w.VIP(cp2.Name); err != nil {
		t.Fatal(err)
	}
	client = w.client()
	if _, err := client.AppsV1().Deployments("default").Get(ctx, "blog", metav1.GetOptions{}); err != nil {
		t.Fatalf("what was there before the power cut: %v", err)
	}
	w.eventually(10*time.Second, "the API's endpoint is the control plane that runs now", func(ctx context.Context) error {
		slice, err := client.DiscoveryV1().EndpointSlices("default").Get(ctx, "kubernetes", metav1.GetOptions{})
		if err == nil && (len(slice.Endpoints) != 1 || slice.Endpoints[0].Addresses[0] != cp2.Address.String()) {
			err = fmt.Errorf("endpoints %v", slice.Endpoints)
		}
		return err
	})
	w.eventually(5*time.Second, "all is published", func(context.Context) error {
		if !w.publishing.TryLock() {
			return errors.New("it is still tried")
		}
		return nil
	})
	w.publishing.Unlock()
	w.NodeUp(cp1)
	w.NodeUp(wk1)
	w.eventually(time.Minute, "both pods restarted", func(ctx context.Context) error {
		pods, err := client.CoreV1().Pods("default").List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(pods.Items) != 2 {
			return fmt.Errorf("%d pods", len(pods.Items))
		}
		for _, pod := range pods.Items {
			if len(pod.Status.ContainerStatuses) != 1 || pod.Status.ContainerStatuses[0].RestartCount != 1 || !pod.Status.ContainerStatuses[0].Ready {
				return fmt.Errorf("%s: %+v", pod.Name, pod.Status.ContainerStatuses)
			}
			if before[pod.Status.PodIP] {
				return fmt.Errorf("%s still has its old address", pod.Name)
			}
		}
		return nil
	})
}

func TestAnErasedPlaneIsAnotherClustersNext(t *testing.T) {
	w := newWorld(t, map[string]string{"registry.example/tools": programs(t, "kubernetes")["kubectl"]}, quick(t, nil))
	client := w.start()
	if _, err := client.CoreV1().Secrets("default").Create(t.Context(), secret("old"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := createWindow(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	w.available(client, "default", "window", 30*time.Second)
	bundle, err := secrets.NewBundle(secrets.NewClock(), config.TalosVersionCurrent)
	if err != nil {
		t.Fatal(err)
	}
	other := w.config
	other.PKI.ClusterCA = bundle.Certs.K8s
	if err := w.ControlPlaneUp(t.Context(), cp2.Name, cp2.Address, other); err == nil || !strings.Contains(err.Error(), "another cluster") {
		t.Errorf("a control plane of another cluster: %v", err)
	}
	if err := w.Erase(); err != nil {
		t.Fatal(err)
	}
	if left := children(t, os.Getpid()); len(left) > 0 {
		t.Errorf("processes %v outlive their cluster", left)
	}
	w.config = other
	client = w.start()
	if _, err := client.CoreV1().Secrets("default").Get(t.Context(), "shown", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("a Secret of the erased cluster: %v", err)
	}
}

func addresses(t *testing.T, client kubernetes.Interface) map[string]bool {
	t.Helper()
	pods, err := client.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, pod := range pods.Items {
		if pod.Status.PodIP == "" || found[pod.Status.PodIP] {
			t.Errorf("pod %s has the address %q, which is empty or another's", pod.Name, pod.Status.PodIP)
		}
		found[pod.Status.PodIP] = true
	}
	return found
}

func TestTheAPIIsRefusedWhereNoControlPlaneRuns(t *testing.T) {
	w := newWorld(t, nil, quick(t, nil))
	client := w.start()
	w.controlPlaneUp(cp2)
	for _, address := range []netip.Addr{cp1.Address, cp2.Address, vip} {
		if err := verifies(w, address); err != nil {
			t.Errorf("%s: %v", address, err)
		}
	}
	w.ControlPlaneDown(cp1.Name)
	if err := verifies(w, cp1.Address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the API of a control plane that is down: %v", err)
	}
	if err := verifies(w, vip); err == nil {
		t.Error("the virtual IP answers although its holder is down")
	}
	if err := verifies(w, cp2.Address); err != nil {
		t.Errorf("the other control plane: %v", err)
	}
	if err := w.VIP(cp2.Name); err != nil {
		t.Fatal(err)
	}
	if err := verifies(w, vip); err != nil {
		t.Errorf("the virtual IP at its new holder: %v", err)
	}
	if _, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{}); err != nil {
		t.Errorf("a client whose connection was cut: %v", err)
	}
	w.ControlPlaneDown(cp2.Name)
	if err := verifies(w, cp2.Address); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("the API with all control planes down: %v", err)
	}
	if conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", etcdPort)); err == nil {
		conn.Close()
		t.Error("etcd runs although all control planes are down")
	}
}

// verifies checks that the API's certificate is the cluster's and valid for an address.
func verifies(w *world, address netip.Addr) error {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(w.config.PKI.ClusterCA.Crt) {
		return errors.New("the cluster's authority is not PEM")
	}
	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: 2 * time.Second}, Config: &tls.Config{RootCAs: pool}}
	conn, err := dialer.Dial("tcp", netip.AddrPortFrom(address, kubernetesPort).String())
	if err != nil {
		return err
	}
	return conn.Close()
}

// The process behind all control planes is a real one, and shows the same kind of certificate.
func TestEachControlPlaneSaysSinceWhenItsAPIServerRuns(t *testing.T) {
	w := newWorld(t, nil, quick(t, nil))
	w.start()
	process, first := w.runsSince(apiServer), w.runsSince(netip.AddrPortFrom(cp1.Address, kubernetesPort))
	if process.Before(time.Now().Add(-5*time.Minute)) || first.Before(process) {
		t.Errorf("the process runs since %s, and the control plane's since %s", process, first)
	}
	time.Sleep(time.Until(first.Add(1100 * time.Millisecond))) // it tells seconds
	w.controlPlaneUp(cp2)
	w.ControlPlaneDown(cp1.Name)
	between := time.Now().Truncate(time.Second)
	w.controlPlaneUp(cp1)
	if again := w.runsSince(netip.AddrPortFrom(cp1.Address, kubernetesPort)); again.Before(between) {
		t.Errorf("a control plane that is up again at %s says that it runs since %s", between, again)
	}
	if got := w.runsSince(apiServer); !got.Equal(process) {
		t.Errorf("the process ran since %s, and now since %s", process, got)
	}
	if err := verifies(w, cp1.Address); err != nil {
		t.Error(err)
	}
}

// runsSince is what an API server says about that by the certificate for itself, whose request without a certificate it refuses.
func (w *world) runsSince(address netip.AddrPort) time.Time {
	w.t.Helper()
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true,
		TLSClientConfig: &tls.Config{ServerName: loopbackName, InsecureSkipVerify: true}}}
	response, err := client.Get("https://" + address.String() + "/readyz")
	if err != nil {
		w.t.Fatal(err)
	}
	defer response.Body.Close()
	name := response.TLS.PeerCertificates[0].Subject.CommonName
	seconds, err := strconv.ParseInt(strings.TrimPrefix(name, loopbackName+"@"), 10, 64)
	if err != nil || response.StatusCode != http.StatusUnauthorized || response.Header.Get("Date") == "" {
		w.t.Fatalf("%s answers %s as %s: %v", address, response.Status, name, err)
	}
	return time.Unix(seconds, 0)
}

func TestANodeIsNotReadyWhenItsPowerIsCut(t *testing.T) {
	w := newWorld(t, nil, quick(t, nil))
	client := w.start()
	w.NodeDown(wk1.Name)
	w.eventually(5*time.Second, "the worker is unknown", func(ctx context.Context) error {
		n, err := client.CoreV1().Nodes().Get(ctx, wk1.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if is := nodeReady(n); is != corev1.ConditionUnknown {
			return fmt.Errorf("Ready is %s", is)
		}
		return nil
	})
	w.NodeUp(wk1)
	w.nodesReady(client, 2)
}
