//go:build linux

package talosnodes

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	clusterconfig "tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/talos/machineconfig"
	sandbox "tazlab.net/castle/ci/sandbox/talosnodes"
)

// TestRealKubernetes is the way from blank machines to a pod, with real kubelets: each step needs the one before it.
func TestRealKubernetes(t *testing.T) {
	cluster := clusterIn(subnet)
	cluster.Kubernetes.Version = "v1.36.4" // that of the recipes
	y := newReal(t, cluster, 9, func(made []string) *sandbox.Components {
		return &sandbox.Components{ControlPlane: made[0], Kubelet: made[1], CoreDNS: made[2], Flannel: made[3], FlannelCNI: made[4]}
	})
	k := &kubernetesOf{yard: y, began: time.Now()}
	for _, node := range cluster.Nodes {
		if err := y.start(node); err != nil {
			t.Fatal(err)
		}
	}
	if report := y.up(t); report.Bootstraps != 1 || !report.Quorum.Complete() {
		t.Fatalf("%d bootstraps, %s", report.Bootstraps, report.Quorum)
	}
	for _, step := range []struct {
		name string
		play func(*testing.T)
	}{
		{"the API answers at the virtual address", k.answers},
		{"each control plane has an API server", k.apiServers},
		{"each machine's kubelet registers its node", k.registered},
		{"all nodes are ready", k.ready},
		{"the cluster's names are answered", k.names},
		{"a pod runs on the worker", k.pod},
		{"a second up changes nothing", func(t *testing.T) { unchanged(t, y) }},
		{"the API outlives the machine that has the virtual address", k.failover},
	} {
		if !t.Run(step.name, step.play) {
			t.Fatal("nothing of what comes after that can be played")
		}
	}
}

// kubernetesOf is a cluster's Kubernetes, as who has its kubeconfig sees it.
type kubernetesOf struct {
	*yard
	began  time.Time
	client *kubernetes.Clientset
}

// answers takes the kubeconfig that the machines give, which leads to the virtual address.
func (k *kubernetesOf) answers(t *testing.T) {
	text, err := k.access(t).Kubeconfig(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(text)
	if err != nil {
		t.Fatal(err)
	}
	if want := "https://" + netip.AddrPortFrom(k.cluster.Endpoint, 6443).String(); config.Host != want {
		t.Fatalf("the kubeconfig leads to %s, not to %s", config.Host, want)
	}
	config.Timeout = 20 * time.Second
	if k.client, err = kubernetes.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	k.eventually(t, "the API answers", func() error {
		version, err := k.client.Discovery().ServerVersion()
		if err == nil && version.GitVersion != k.cluster.Kubernetes.Version {
			t.Fatalf("it is of %s", version.GitVersion)
		}
		return err
	})
}

// apiServers looks for each one's address among the endpoints of the Service kubernetes, where an API server puts its own.
func (k *kubernetesOf) apiServers(t *testing.T) {
	k.eventually(t, "three API servers are there", func() error {
		list, err := k.client.DiscoveryV1().EndpointSlices("default").List(call(t), metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=kubernetes"})
		if err != nil {
			return err
		}
		there := map[string]bool{}
		for _, slice := range list.Items {
			for _, endpoint := range slice.Endpoints {
				there[endpoint.Addresses[0]] = true
			}
		}
		return sameAs(there, k.controlPlanes(), func(node clusterconfig.Node) string { return node.Address.String() })
	})
}

func (k *kubernetesOf) registered(t *testing.T) {
	k.eventually(t, "all nodes are registered", func() error {
		there := map[string]bool{}
		for _, node := range k.listed(t) {
			there[node.Name] = true
			if got := node.Status.NodeInfo.KubeletVersion; got != k.cluster.Kubernetes.Version {
				return fmt.Errorf("%s has a kubelet of %q", node.Name, got)
			}
		}
		return sameAs(there, k.cluster.Nodes, func(node clusterconfig.Node) string { return node.Name })
	})
}

func (k *kubernetesOf) listed(t *testing.T) []corev1.Node {
	t.Helper()
	list, err := k.client.CoreV1().Nodes().List(call(t), metav1.ListOptions{})
	if err != nil {
		t.Log(err)
		return nil
	}
	return list.Items
}

func (k *kubernetesOf) ready(t *testing.T) {
	since := map[string]string{}
	k.eventually(t, "all nodes are ready", func() error {
		there := map[string]bool{}
		for _, node := range k.listed(t) {
			if at, is := readySince(&node); is {
				there[node.Name] = true
				since[node.Name] = fmt.Sprintf("registered after %s, ready after %s", node.CreationTimestamp.Sub(k.began).Round(time.Second), at.Sub(k.began).Round(time.Second))
			}
		}
		return sameAs(there, k.cluster.Nodes, func(node clusterconfig.Node) string { return node.Name })
	})
	t.Log(since)
}

func readySince(node *corev1.Node) (at time.Time, is bool) {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.LastTransitionTime.Time, condition.Status == corev1.ConditionTrue
		}
	}
	return time.Time{}, false
}

// names needs pods' network and the Services' addresses: CoreDNS is ready once it has read the cluster's Services by that of the API.
func (k *kubernetesOf) names(t *testing.T) {
	k.eventually(t, "CoreDNS is ready", func() error {
		deployment, err := k.client.AppsV1().Deployments("kube-system").Get(call(t), "coredns", metav1.GetOptions{})
		if err != nil {
			return err
		}
		return unless(deployment.Status.ReadyReplicas == 2, "%d of 2 pods are ready", deployment.Status.ReadyReplicas)
	})
}

// pod runs a pod of an image that the nodes have, as anybody would, and reads what another one says by way of its kubelet.
func (k *kubernetesOf) pod(t *testing.T) {
	pods := k.client.CoreV1().Pods("default")
	k.eventually(t, "a pod is made", func() error { // its service account is made by a controller
		_, err := pods.Create(call(t), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "first"}, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "first", Image: machineconfig.PauseImage}},
		}}, metav1.CreateOptions{})
		return err
	})
	k.eventually(t, "the pod runs", func() error {
		pod, err := pods.Get(call(t), "first", metav1.GetOptions{})
		if err != nil {
			return err
		}
		at, err := netip.ParseAddr(pod.Status.PodIP)
		if pod.Status.Phase != corev1.PodRunning || err != nil {
			return fmt.Errorf("it is %s: %+v", pod.Status.Phase, pod.Status.ContainerStatuses)
		}
		if pod.Spec.NodeName != k.worker().Name || !k.cluster.Kubernetes.PodSubnet.Contains(at) {
			t.Fatalf("it is on %s and has %s", pod.Spec.NodeName, at)
		}
		return nil
	})
	k.eventually(t, "what CoreDNS says is read", func() error {
		list, err := k.client.CoreV1().Pods("kube-system").List(call(t), metav1.ListOptions{LabelSelector: "k8s-app=kube-dns"})
		if err != nil {
			return err
		}
		for _, pod := range list.Items {
			text, err := k.client.CoreV1().Pods(pod.Namespace).GetLogs(pod.Name, &corev1.PodLogOptions{}).DoRaw(call(t))
			if err != nil || !strings.Contains(string(text), "CoreDNS-") {
				return fmt.Errorf("%s says %q: %w", pod.Name, text, err)
			}
		}
		return nil
	})
}

func (k *kubernetesOf) failover(t *testing.T) {
	holder := k.held(t, "")
	if err := k.cut(holder); err != nil {
		t.Fatal(err)
	}
	k.held(t, holder.Name)
	k.eventually(t, "the API says that the machine is not ready", func() error {
		node, err := k.client.CoreV1().Nodes().Get(call(t), holder.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		_, is := readySince(node)
		return unless(!is, "%s is ready", node.Name)
	})
	if err := k.start(holder); err != nil {
		t.Fatal(err)
	}
	if report := k.up(t); report.Changed() || !report.Quorum.Complete() {
		t.Errorf("%+v", report)
	}
	k.ready(t)
}

// sameAs compares what is there with what each node stands for.
func sameAs(there map[string]bool, nodes []clusterconfig.Node, of func(clusterconfig.Node) string) error {
	var want []string
	for _, node := range nodes {
		want = append(want, of(node))
	}
	slices.Sort(want)
	got := slices.Sorted(maps.Keys(there))
	return unless(slices.Equal(got, want), "there are %q, not %q", got, want)
}
