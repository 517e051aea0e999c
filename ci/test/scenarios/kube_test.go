//go:build linux

package scenarios

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/client"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"google.golang.org/grpc"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"tazlab.net/castle/ci/cluster/flux"
)

var addressPools = schema.GroupVersionResource{Group: "metallb.io", Version: "v1beta1", Resource: "ipaddresspools"}

// kube is the cluster's API, as the kubeconfig that castle gives opens it.
type kube struct {
	world   *world
	config  []byte
	typed   kubernetes.Interface
	dynamic dynamic.Interface
}

// kubernetes opens the API at the virtual IP, without castle's proxy.
func (w *world) kubernetes(kubeconfig []byte) kube {
	w.t.Helper()
	config, err := clientcmd.RESTConfigFromKubeConfig(kubeconfig)
	if err != nil {
		w.t.Fatal(err)
	}
	if want := "https://" + net.JoinHostPort(w.cluster.Endpoint.String(), "6443"); config.Host != want {
		w.t.Errorf("the kubeconfig names %s, not the virtual IP %s", config.Host, want)
	}
	config.Dial = w.dial
	config.Timeout = 10 * time.Second
	typed, err := kubernetes.NewForConfig(config)
	if err != nil {
		w.t.Fatal(err)
	}
	dynamic, err := dynamic.NewForConfig(config)
	if err != nil {
		w.t.Fatal(err)
	}
	return kube{w, kubeconfig, typed, dynamic}
}

// get reads an object, or ends the test.
func (k kube) get(resource schema.GroupVersionResource, namespace, name string) *unstructured.Unstructured {
	k.world.t.Helper()
	object, err := k.dynamic.Resource(resource).Namespace(namespace).Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		k.world.t.Fatal(err)
	}
	return object
}

// hasNodes waits until exactly the declared nodes are there and Ready: after a power cut the first heartbeats are to come.
func (k kube) hasNodes() {
	k.world.t.Helper()
	var declared []string
	for _, node := range k.world.cluster.Nodes {
		declared = append(declared, node.Name)
	}
	slices.Sort(declared)
	k.world.until(2*time.Minute, fmt.Sprintf("%v are Ready", declared), func() (string, bool) {
		nodes, err := k.typed.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
		if err != nil {
			return err.Error(), false
		}
		var ready []string
		for _, node := range nodes.Items {
			for _, condition := range node.Status.Conditions {
				if condition.Type == corev1.NodeReady && condition.Status == corev1.ConditionTrue {
					ready = append(ready, node.Name)
				}
			}
		}
		slices.Sort(ready)
		return fmt.Sprintf("of %d nodes these are Ready: %v", len(nodes.Items), ready), slices.Equal(ready, declared) && len(nodes.Items) == len(declared)
	})
}

// givesAddresses fails the test unless a Service of type LoadBalancer gets an address out of the pool.
func (k kube) givesAddresses() {
	k.world.t.Helper()
	first, last := k.pool()
	given, remove := k.service("scenario")
	if given.Less(first) || last.Less(given) {
		k.world.t.Errorf("the Service got %s, which is not of %s-%s", given, first, last)
	}
	remove()
}

// fillsPool has a Service for each address of the pool, until empty is called.
func (k kube) fillsPool() (empty func()) {
	k.world.t.Helper()
	var removals []func()
	first, last := k.pool()
	for want := first; !last.Less(want); want = want.Next() {
		_, remove := k.service("holder-" + strings.ReplaceAll(want.String(), ".", "-"))
		removals = append(removals, remove)
	}
	return func() {
		for _, remove := range removals {
			remove()
		}
	}
}

// pool is the first and the last address that Services may get.
func (k kube) pool() (first, last netip.Addr) {
	low, high, _ := strings.Cut(k.world.cluster.LoadBalancer.Pool[0], "-")
	return netip.MustParseAddr(low), netip.MustParseAddr(high)
}

// service makes a Service of type LoadBalancer and waits until it has its address.
func (k kube) service(name string) (given netip.Addr, remove func()) {
	k.world.t.Helper()
	ctx := context.Background()
	services := k.typed.CoreV1().Services("default")
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}}}
	if _, err := services.Create(ctx, service, metav1.CreateOptions{}); err != nil {
		k.world.t.Fatal(err)
	}
	k.world.until(2*time.Minute, "the Service "+name+" has an address", func() (string, bool) {
		seen, err := services.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err.Error(), false
		}
		for _, ingress := range seen.Status.LoadBalancer.Ingress {
			given, _ = netip.ParseAddr(ingress.IP)
		}
		return "no address", given.IsValid()
	})
	return given, func() {
		if err := services.Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			k.world.t.Error(err)
		}
	}
}

// follows waits until Flux has applied a commit everywhere and the blog runs with an image.
func (k kube) follows(commit, tag string) {
	k.world.t.Helper()
	revision := k.world.cluster.GitOps.Branch + "@sha1:" + commit
	k.world.until(3*time.Minute, "Flux is at "+revision+" and the blog at "+tag, func() (string, bool) {
		source, err := k.dynamic.Resource(flux.GitRepositories).Namespace("flux-system").Get(context.Background(), "flux-system", metav1.GetOptions{})
		if err != nil {
			return err.Error(), false
		}
		if at, _, _ := unstructured.NestedString(source.Object, "status", "artifact", "revision"); at != revision {
			return "GitRepository at " + at, false
		}
		list, err := k.dynamic.Resource(flux.Kustomizations).List(context.Background(), metav1.ListOptions{})
		if err != nil {
			return err.Error(), false
		}
		if len(list.Items) != 2 {
			return fmt.Sprintf("%d Kustomizations", len(list.Items)), false
		}
		for _, item := range list.Items {
			if at, _, _ := unstructured.NestedString(item.Object, "status", "lastAppliedRevision"); at != revision {
				return item.GetName() + " at " + at, false
			}
		}
		deployment, err := k.typed.AppsV1().Deployments("blog").Get(context.Background(), "hugo-blog", metav1.GetOptions{})
		if err != nil {
			return err.Error(), false
		}
		image := deployment.Spec.Template.Spec.Containers[0].Image
		if !strings.HasSuffix(image, ":"+tag) {
			return "the blog's image is " + image, false
		}
		status := deployment.Status
		return fmt.Sprintf("%d of %d replicas available", status.AvailableReplicas, *deployment.Spec.Replicas),
			status.ObservedGeneration == deployment.Generation && status.UpdatedReplicas == *deployment.Spec.Replicas &&
				status.AvailableReplicas == *deployment.Spec.Replicas && status.Replicas == *deployment.Spec.Replicas
	})
}

// reconcile asks Flux to look at Git now.
func (k kube) reconcile() {
	k.world.t.Helper()
	patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"reconcile.fluxcd.io/requestedAt":%q}}}`, time.Now().Format(time.RFC3339Nano))
	if _, err := k.dynamic.Resource(flux.GitRepositories).Namespace("flux-system").Patch(context.Background(), "flux-system", types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
		k.world.t.Fatal(err)
	}
}

// startedAllOnce fails the test where a container of the layers was started a second time: a probe of its kubelet's took it for dead, or
// it came before what it needs and ended.
func (k kube) startedAllOnce() {
	k.world.t.Helper()
	pods, err := k.typed.CoreV1().Pods("").List(context.Background(), metav1.ListOptions{})
	k.must(err)
	for _, pod := range pods.Items {
		for _, container := range pod.Status.ContainerStatuses {
			if !slices.Contains([]string{"metallb-system", "external-secrets", "flux-system"}, pod.Namespace) || container.RestartCount == 0 {
				continue
			}
			last := container.LastTerminationState.Terminated
			k.world.t.Errorf("%s of %s/%s was started %d times more, the last time after %+v", container.Name, pod.Namespace, pod.Name, container.RestartCount, last)
		}
	}
}

// identity is what must stay the same as long as a cluster is the same one.
func (k kube) identity() string {
	k.world.t.Helper()
	var parts []string
	for _, name := range []string{"kube-system", "blog", "metallb-system", "external-secrets", "flux-system"} {
		namespace, err := k.typed.CoreV1().Namespaces().Get(context.Background(), name, metav1.GetOptions{})
		if err != nil {
			k.world.t.Fatal(err)
		}
		parts = append(parts, name+" "+string(namespace.UID))
	}
	pool := k.get(addressPools, "metallb-system", "castle")
	return strings.Join(append(parts, fmt.Sprintf("pool %s generation %d", pool.GetUID(), pool.GetGeneration())), "\n")
}

// etcd is the member list as each control plane gives it, "id name" sorted, and the leaders they name.
func (w *world) etcd(talosconfig []byte) (members []string, leaders []uint64) {
	w.t.Helper()
	config, err := clientconfig.FromBytes(talosconfig)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for i, node := range w.cluster.ControlPlanes() {
		c, err := client.New(ctx, client.WithConfig(config), client.WithEndpoints(node.Address.String()), client.WithGRPCDialOptions(
			grpc.WithNoProxy(), grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) { return w.dial(ctx, "tcp", address) })))
		if err != nil {
			w.t.Fatal(err)
		}
		list, err := c.EtcdMemberList(ctx, nil)
		if err != nil {
			w.t.Fatalf("etcd's members as %s knows them: %v", node.Name, err)
		}
		status, err := c.EtcdStatus(ctx)
		if err != nil {
			w.t.Fatalf("etcd's status at %s: %v", node.Name, err)
		}
		_ = c.Close()
		var seen []string
		for _, member := range list.GetMessages()[0].GetMembers() {
			seen = append(seen, fmt.Sprintf("%x %s", member.GetId(), member.GetHostname()))
		}
		slices.Sort(seen)
		if i > 0 && !slices.Equal(seen, members) {
			w.t.Errorf("%s knows the members %v, another one %v", node.Name, seen, members)
		}
		members = seen
		if leader := status.GetMessages()[0].GetMemberStatus().GetLeader(); !slices.Contains(leaders, leader) {
			leaders = append(leaders, leader)
		}
	}
	return members, leaders
}

// hasAQuorum fails the test unless etcd has every control plane as a member, and one leader.
func (w *world) hasAQuorum(talosconfig []byte) []string {
	w.t.Helper()
	members, leaders := w.etcd(talosconfig)
	if len(members) != len(w.cluster.ControlPlanes()) || len(leaders) != 1 || leaders[0] == 0 {
		w.t.Errorf("etcd has the members %v and the leaders %v", members, leaders)
	}
	return members
}
