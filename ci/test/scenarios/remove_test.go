//go:build linux

package scenarios

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/luthermonson/go-proxmox"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/timeline"
	"tazlab.net/castle/ci/test/needs"
	"tazlab.net/castle/ci/test/tell"
)

// A node's line of cluster.yaml, to be taken out.
const (
	cp1     = "  - {name: sandbox-cp-1, role: controlplane, address: 192.168.77.211, vmID: 521, host: pve, cores: 4, memory: 8192, disks: [{size: 40}]}\n"
	cp3     = "  - {name: sandbox-cp-3, role: controlplane, address: 192.168.77.213, vmID: 523, host: pve, cores: 4, memory: 8192, disks: [{size: 40}]}\n"
	worker2 = "  - {name: sandbox-worker-2, role: worker, address: 192.168.77.215, vmID: 525, host: pve, cores: 4, memory: 16384, disks: [{size: 100}]}\n"
)

// leaves calls remove-node for a node, with the folder in which cluster.yaml does not list it.
func (w *world) leaves(live, node string, flags ...string) *called {
	w.t.Helper()
	c := w.start(live, nil, append([]string{"remove-node", "--node=" + node, "--confirm=" + node}, flags...)...)
	c.wait(5 * time.Minute)
	return c
}

// edited copies the folder with changes of cluster.yaml.
func (w *world) edited(name string, changes ...change) string {
	w.t.Helper()
	for i := range changes {
		changes[i].file = "live/sandbox/cluster.yaml"
	}
	return w.copyLive(name, append(justPlatform(), changes...)...)
}

func (w *world) hasVM(name string) bool {
	return slices.ContainsFunc(w.vms(), func(vm vm) bool { return vm.Name == name })
}

func TestAWorkerLeaves(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "none", "0", justPlatform()...)
	w.on("disk-stays=525")
	w.castle("create").succeeds()
	k := w.kubernetes(w.unsealed("kubeconfig"))
	members := w.hasAQuorum(w.unsealed("talosconfig"))
	vms := w.vms()
	const node = "sandbox-worker-2"
	without := w.edited("without", change{from: worker2}, change{from: "replicas: 2", to: "replicas: 1"})
	create := func() *called {
		c := w.start(without, nil, "create")
		c.wait(5 * time.Minute)
		return c
	}

	w.leaves(w.live, node).failsWith("cluster.yaml of cluster sandbox lists sandbox-worker-2", "take it out there first")
	create().failsWith("create would remove the VM of sandbox-worker-2", "dagger call remove-node --cluster sandbox --node sandbox-worker-2 --confirm sandbox-worker-2", "nothing was changed")
	w.leaves(without, "sandbox-worker-9").failsWith("cluster sandbox has no node sandbox-worker-9", "sandbox-worker-1, sandbox-worker-2")

	// All that speaks against it is told at once.
	tell.Fault(t, "the node is the last worker that takes pods, and has a pod that nobody would make again and the only copy of a volume")
	k.cordons("sandbox-worker-1", true)
	k.runs(node, "alone")
	k.hasReplicas(map[string]string{"kept": "sandbox-worker-1", "lost": node})
	w.leaves(without, node).failsWith("sandbox-worker-2 is the last node that is Ready and takes pods", "nobody would make these pods on sandbox-worker-2 again: default/alone",
		"no other node than sandbox-worker-2 has a healthy copy of these volumes of Longhorn: lost;", "nothing was changed")
	if got := w.vms(); !slices.Equal(got, vms) || k.isCordoned(node) {
		t.Errorf("Proxmox had %+v and has %+v", vms, got)
	}
	k.cordons("sandbox-worker-1", false)
	k.must(k.typed.CoreV1().Pods("default").Delete(t.Context(), "alone", metav1.DeleteOptions{}))
	k.must(k.dynamic.Resource(replicas).Namespace("default").Delete(t.Context(), "lost", metav1.DeleteOptions{}))

	// A budget that cannot be kept holds the node.
	k.deploys("web", node)
	k.must2(k.typed.PolicyV1().PodDisruptionBudgets("default").Create(t.Context(), &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "keep"},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &intstr.IntOrString{IntVal: 1}, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}}}, metav1.CreateOptions{}))
	w.until(time.Minute, "the budget counts", func() (string, bool) {
		budget, err := k.typed.PolicyV1().PodDisruptionBudgets("default").Get(t.Context(), "keep", metav1.GetOptions{})
		return fmt.Sprint(err), err == nil && budget.Status.CurrentHealthy == 1
	})
	w.leaves(without, node, "--drain-timeout=3s").failsWith("sandbox-worker-2 still has pods after 3s, and stays cordoned: default/web-", "is held: Cannot evict pod as it would violate the pod's disruption budget. The disruption budget keep needs 1 healthy pods", "to go on where it stopped: dagger call remove-node --cluster sandbox --node sandbox-worker-2 --confirm sandbox-worker-2")
	if got := w.vms(); !slices.Equal(got, vms) || !k.isCordoned(node) {
		t.Errorf("Proxmox had %+v and has %+v, or the node is not cordoned", vms, got)
	}
	k.must(k.typed.PolicyV1().PodDisruptionBudgets("default").Delete(t.Context(), "keep", metav1.DeleteOptions{}))

	said := w.leaves(without, node).succeeds().stdout.String()
	for _, disk := range []string{"local-lvm:vm-525-disk-0", "local-lvm:vm-525-cloudinit"} {
		if want := "VM 525 " + node + " is gone, and its volume " + disk; !strings.Contains(said, want) || !strings.Contains(said, `type "pvesm free `+disk+`" on pve`) {
			t.Errorf("remove-node does not say %q, or not what removes it:\n%s", want, said)
		}
	}
	for _, step := range []string{"checks", "drain " + node, "reset " + node, "node " + node} {
		if result := w.event(ends("step", "platform", step)).Result; result != timeline.ResultOK {
			t.Errorf("%s: %q", step, result)
		}
	}
	if w.hasVM(node) || k.hasNode(node) {
		t.Errorf("Proxmox has %+v", w.vms())
	}
	if got := w.hasAQuorum(w.unsealed("talosconfig")); !slices.Equal(got, members) {
		t.Errorf("etcd's members were %v and are %v", members, got)
	}
	w.leaves(without, node).failsWith("cluster sandbox has no node sandbox-worker-2, or none any more")
	create().succeeds()
	if log := w.toolLog("platform"); !strings.Contains(log, "No changes.") {
		t.Errorf("the machines were changed:\n%s", log)
	}
}

func TestControlPlanesLeave(t *testing.T) {
	needs.Slow(t)
	t.Parallel()
	w := newWorld(t, "none", "0", justPlatform()...)
	w.on()
	w.castle("create").succeeds()
	k := w.kubernetes(w.unsealed("kubeconfig"))
	vms := w.vms()
	one := w.edited("one", change{from: cp1}, change{from: cp3})
	tell.Fault(t, "one of three control planes is down")

	// One of three is down: etcd can spare that one, and no other.
	w.byHand(func(ctx context.Context, host *proxmox.Node) error {
		down, err := host.VirtualMachine(ctx, 523)
		if err != nil {
			return err
		}
		return done(ctx)(down.Stop(ctx))
	})
	w.until(time.Minute, "etcd has noticed", func() (string, bool) {
		c := w.leaves(one, "sandbox-cp-1")
		said := c.stderr.String()
		return said, c.err != nil && strings.Contains(said, "without sandbox-cp-1, etcd would have 1 of 2 members healthy, and needs 2 for a quorum")
	})
	if got := w.vms(); !slices.EqualFunc(got, vms, func(a, b vm) bool { return a.Name == b.Name }) || k.isCordoned("sandbox-cp-1") {
		t.Errorf("Proxmox had %+v and has %+v", vms, got)
	}
	w.leaves(one, "sandbox-cp-3").succeeds()
	w.cluster.Nodes = slices.Delete(w.cluster.Nodes, 2, 3)
	if got := w.hasAQuorum(w.unsealed("talosconfig")); len(got) != 2 {
		t.Errorf("etcd's members are %v", got)
	}

	// The other one is its leader and has the virtual IP, which move.
	w.leaves(one, "sandbox-cp-1").succeeds()
	w.live, w.cluster.Nodes = one, w.cluster.Nodes[1:]
	w.hasAQuorum(w.unsealed("talosconfig"))
	k.hasNodes()
	w.castle("create").succeeds()
	if log := w.toolLog("platform"); !strings.Contains(log, "No changes.") {
		t.Errorf("the machines were changed:\n%s", log)
	}
}

// noted tells whether the latest run, which may only just have begun, has come to an event.
func (w *world) noted(is func(timeline.Event) bool) bool {
	events, err := timeline.Read(filepath.Join(w.lastRun(), "events.jsonl"))
	return err == nil && slices.ContainsFunc(events, is)
}

// begins fits the events of a step, from its start on.
func begins(name string) func(timeline.Event) bool {
	return func(e timeline.Event) bool { return strings.HasPrefix(e.Name, name) }
}

// TestANodeLeavesThatIsKilledWhileToolsWork: whatever Talos and OpenTofu have done already, the next call does the rest. What the verb makes of an
// interruption at each of its steps is held in ci/cluster/removenode.
func TestANodeLeavesThatIsKilledWhileToolsWork(t *testing.T) {
	needs.Slow(t)
	t.Parallel()
	w := newWorld(t, "homelab", "0.02", justPlatform()...)
	w.on()
	w.castle("create").succeeds()
	const node = "sandbox-cp-3"
	other := w.edited("other", change{from: cp3, to: strings.NewReplacer("cp-3", "cp-4", "213", "216", "523", "526").Replace(cp3)})
	for _, at := range []struct {
		what string
		is   func(timeline.Event) bool
	}{
		{"leaving etcd", begins("etcd without")},
		{"resetting itself", begins("reset")},
		{"OpenTofu begins", func(e timeline.Event) bool { return e.Kind == timeline.KindLayer && e.Layer == "platform" }},
		{"its VM is gone, and in the state", func(timeline.Event) bool { return !w.hasVM(node) }},
	} {
		before := w.lastRun()
		c := w.start(other, nil, "remove-node", "--node="+node, "--confirm="+node)
		w.until(time.Minute, at.what, func() (string, bool) {
			select {
			case <-c.done:
				t.Fatalf("%s: it ended\n%s", at.what, c.stderr.String())
			default:
			}
			return "", w.lastRun() != before && w.noted(at.is)
		})
		c.kill()
		c.wait(time.Minute)
	}
	if !w.kubernetes(w.unsealed("kubeconfig")).hasNode(node) {
		t.Error("the last kill came too late")
	}
	w.leaves(other, node).succeeds()

	w.live = other
	c := w.castle("create").succeeds()
	for _, node := range []string{"sandbox-cp-1", "sandbox-cp-2", "sandbox-worker-1", "sandbox-worker-2"} {
		if strings.Contains(c.stderr.String(), "step "+node+": ok") {
			t.Errorf("%s was configured again", node)
		}
	}
	var err error
	if w.cluster, err = config.Load(other); err != nil {
		t.Fatal(err)
	}
	w.hasExactlyItsVMs()
	w.hasAQuorum(w.unsealed("talosconfig"))
	w.kubernetes(w.unsealed("kubeconfig")).hasNodes()
}

var replicas = schema.GroupVersionResource{Group: "longhorn.io", Version: "v1beta2", Resource: "replicas"}

func (k kube) must(err error) {
	k.world.t.Helper()
	if err != nil {
		k.world.t.Fatal(err)
	}
}

func (k kube) must2(_ any, err error) { k.world.t.Helper(); k.must(err) }

func (k kube) cordons(node string, cordoned bool) {
	k.world.t.Helper()
	k.must2(k.typed.CoreV1().Nodes().Patch(k.world.t.Context(), node, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"unschedulable":%v}}`, cordoned), metav1.PatchOptions{}))
}

func (k kube) isCordoned(name string) bool {
	k.world.t.Helper()
	node, err := k.typed.CoreV1().Nodes().Get(k.world.t.Context(), name, metav1.GetOptions{})
	k.must(err)
	return node.Spec.Unschedulable
}

func (k kube) hasNode(name string) bool {
	k.world.t.Helper()
	nodes, err := k.typed.CoreV1().Nodes().List(k.world.t.Context(), metav1.ListOptions{})
	k.must(err)
	return slices.ContainsFunc(nodes.Items, func(node corev1.Node) bool { return node.Name == name })
}

// web is a pod that runs nothing.
func web(labels map[string]string) (metav1.ObjectMeta, corev1.PodSpec) {
	none := int64(0)
	return metav1.ObjectMeta{Labels: labels}, corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "example.org/web:1"}}, TerminationGracePeriodSeconds: &none}
}

// runs puts a pod on a node that no controller makes again.
func (k kube) runs(node, name string) {
	k.world.t.Helper()
	meta, spec := web(nil)
	meta.Name, spec.NodeName = name, node
	k.must2(k.typed.CoreV1().Pods("default").Create(k.world.t.Context(), &corev1.Pod{ObjectMeta: meta, Spec: spec}, metav1.CreateOptions{}))
}

// deploys runs a Deployment of one pod, which would rather be on a node.
func (k kube) deploys(name, node string) {
	k.world.t.Helper()
	labels := map[string]string{"app": name}
	meta, spec := web(labels)
	spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
		Weight: 100, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{node}}}},
	}}}}
	k.must2(k.typed.AppsV1().Deployments("default").Create(k.world.t.Context(), &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{Selector: &metav1.LabelSelector{MatchLabels: labels}, Template: corev1.PodTemplateSpec{ObjectMeta: meta, Spec: spec}}}, metav1.CreateOptions{}))
	k.world.until(time.Minute, name+" runs on "+node, func() (string, bool) {
		pods, err := k.typed.CoreV1().Pods("default").List(k.world.t.Context(), metav1.ListOptions{LabelSelector: "app=" + name})
		if err != nil || len(pods.Items) != 1 {
			return fmt.Sprint(err), false
		}
		return fmt.Sprintf("%s on %s", pods.Items[0].Status.Phase, pods.Items[0].Spec.NodeName), pods.Items[0].Status.Phase == corev1.PodRunning && pods.Items[0].Spec.NodeName == node
	})
}

// hasReplicas has Longhorn's records of the one copy of each volume, by its node.
func (k kube) hasReplicas(nodes map[string]string) {
	k.world.t.Helper()
	ctx := k.world.t.Context()
	type object = map[string]any
	k.must2(k.dynamic.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).Create(ctx, &unstructured.Unstructured{Object: object{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": object{"name": "replicas.longhorn.io"},
		"spec": object{"group": "longhorn.io", "scope": "Namespaced", "names": object{"kind": "Replica", "plural": "replicas", "singular": "replica"},
			"versions": []any{object{"name": "v1beta2", "served": true, "storage": true, "schema": object{"openAPIV3Schema": object{"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}}},
	}}, metav1.CreateOptions{}))
	for volume, node := range nodes {
		k.world.until(time.Minute, "the replica of "+volume+" can be made", func() (string, bool) {
			_, err := k.dynamic.Resource(replicas).Namespace("default").Create(ctx, &unstructured.Unstructured{Object: object{
				"apiVersion": "longhorn.io/v1beta2", "kind": "Replica", "metadata": object{"name": volume},
				"spec": object{"volumeName": volume, "nodeID": node, "healthyAt": "2026-01-01T00:00:00Z", "failedAt": ""},
			}}, metav1.CreateOptions{})
			return fmt.Sprint(err), err == nil
		})
	}
}
