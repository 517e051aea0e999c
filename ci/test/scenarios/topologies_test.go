//go:build linux

package scenarios

import (
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	clusterconfig "tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/timeline"
	"tazlab.net/castle/ci/test/needs"
	"tazlab.net/castle/ci/test/tell"
)

const described = "live/sandbox/cluster.yaml"

// sections of the sandbox's description.
const (
	longhorn = "storage:\n  replicas: 2\n  dataPath: /var/lib/longhorn\n  storageClass: longhorn\n"
	oneCopy  = "storage:\n  replicas: 1\n  dataPath: /var/lib/longhorn-data\n"
)

// alone leaves one control plane of the sandbox's nodes, with the storage that is written.
func alone(storage string) []change {
	return []change{
		{file: described, from: "  - {name: sandbox-cp-2, role: controlplane, address: 192.168.77.212, vmID: 522, host: pve, cores: 4, memory: 8192, disks: [{size: 40}]}\n"},
		{file: described, from: "  - {name: sandbox-cp-3, role: controlplane, address: 192.168.77.213, vmID: 523, host: pve, cores: 4, memory: 8192, disks: [{size: 40}]}\n"},
		{file: described, from: "  - {name: sandbox-worker-1, role: worker, address: 192.168.77.214, vmID: 524, host: pve, cores: 4, memory: 16384, disks: [{size: 100}]}\n"},
		{file: described, from: "  - {name: sandbox-worker-2, role: worker, address: 192.168.77.215, vmID: 525, host: pve, cores: 4, memory: 16384, disks: [{size: 100}]}\n"},
		{file: described, from: longhorn, to: storage},
		{file: described, from: "  template: 900\n", to: "  template: 900\n  linkedClones: true\n"},
	}
}

// TestOneMachineIsAClusterWithoutStorage: the one machine runs etcd, the API and all pods, and every restart takes all of that away. Its disk
// is a linked clone of the template's.
func TestOneMachineIsAClusterWithoutStorage(t *testing.T) {
	needs.Slow(t)
	w := newWorld(t, "homelab", "0.02", alone("storage: none\n")...)
	w.on()
	w.castle("create").succeeds()
	w.hasExactlyItsVMs()
	members := w.hasAQuorum(w.unsealed("talosconfig"))
	k := w.kubernetes(w.unsealed("kubeconfig"))
	k.hasNodes()
	k.givesAddresses()
	k.follows(w.head(), seedTag)
	node, err := k.typed.CoreV1().Nodes().Get(t.Context(), "sandbox-cp-1", metav1.GetOptions{})
	k.must(err)
	if _, excluded := node.Labels["node.kubernetes.io/exclude-from-external-load-balancers"]; excluded || len(node.Spec.Taints) > 0 {
		t.Errorf("its labels are %v, its taints %v", node.Labels, node.Spec.Taints)
	}
	w.hasNoStorage()
	if log := w.cloneLog(); !strings.Contains(log, "create linked clone of drive scsi0") {
		t.Errorf("the clone's task says\n%s", log)
	}
	w.isWell()
	if plan := w.castle("plan").succeeds().stdout.String(); strings.Count(plan, "No changes.") != 5 || strings.Contains(plan, "storage") {
		t.Errorf("the plan is\n%s", plan)
	}

	// Its VM gets more memory: there is nowhere to drain its pods to.
	boot := k.boots()["sandbox-cp-1"]
	more := change{file: described, from: "vmID: 521, host: pve, cores: 4, memory: 8192", to: "vmID: 521, host: pve, cores: 4, memory: 10240"}
	w.use("more", append(alone("storage: none\n"), more)...)
	w.castle("create").succeeds()
	for _, away := range []string{"it is the only control plane: nobody reaches the API while it restarts", "no other node takes pods"} {
		if w.noted(func(e timeline.Event) bool { return strings.HasPrefix(e.Cause, away) }) {
			tell.Observation(t, 0, "create says: %s", away)
		} else {
			t.Errorf("create does not say %q", away)
		}
	}
	k.hasNodes()
	if k.boots()["sandbox-cp-1"] == boot || k.isCordoned("sandbox-cp-1") {
		t.Error("it was not restarted, or is still cordoned")
	}
	k.follows(w.head(), seedTag)
	if got := w.hasAQuorum(w.unsealed("talosconfig")); !slices.Equal(got, members) {
		t.Errorf("etcd's members were %v and are %v", members, got)
	}

	// Storage, and without it again by the owner's word alone.
	w.use("storage", append(alone(oneCopy), more)...)
	w.castle("create").succeeds()
	w.isWell()
	w.use("none", append(alone("storage: none\n"), more)...)
	w.castle("create").failsWith("the layer storage is none in cluster.yaml, and its state holds", "create --cluster sandbox --remove-layer storage", "nothing was changed")
	if plan := w.castle("plan").succeeds().stdout.String(); !strings.Contains(plan, "--remove-layer storage") {
		t.Errorf("the plan is\n%s", plan)
	}
	w.castle("create", "--remove-layer=storage").succeeds()
	w.hasNoStorage()
	classes, err := k.typed.StorageV1().StorageClasses().List(t.Context(), metav1.ListOptions{})
	if k.must(err); len(classes.Items) > 0 {
		t.Errorf("there are the storage classes %v", classes.Items)
	}
	w.castle("create").succeeds()

	w.castle("destroy", "--confirm=sandbox").succeeds()
	w.nothingIsLeft()
}

// use goes on with another description of the cluster.
func (w *world) use(name string, changes ...change) {
	w.t.Helper()
	w.live = w.copyLive(name, changes...)
	var err error
	if w.cluster, err = clusterconfig.Load(w.live); err != nil {
		w.t.Fatal(err)
	}
}

// cloneLog is what Proxmox says of the clones that it made.
func (w *world) cloneLog() string {
	w.t.Helper()
	var tasks []struct{ UPID, Type string }
	if err := w.proxmox("/nodes/pve/tasks", &tasks); err != nil {
		w.t.Fatal(err)
	}
	var log strings.Builder
	for _, task := range tasks {
		if task.Type != "qmclone" {
			continue
		}
		var lines []struct{ T string }
		if err := w.proxmox("/nodes/pve/tasks/"+url.PathEscape(task.UPID)+"/log", &lines); err != nil {
			w.t.Fatal(err)
		}
		for _, line := range lines {
			fmt.Fprintln(&log, line.T)
		}
	}
	return log.String()
}

// hasNoStorage fails the test where status knows of a layer storage, or of its gate.
func (w *world) hasNoStorage() {
	w.t.Helper()
	status := w.status()
	for _, layer := range status.Layers {
		if layer.Layer == "storage" {
			w.t.Errorf("status has the layer %+v", layer)
		}
	}
	for _, gate := range status.Gates {
		if gate.Gate == "storage" {
			w.t.Errorf("status has the gate %+v", gate)
		}
	}
}

// TestAPatchGoesToOneNodeAfterTheOther, while the cluster is well, and restarts the nodes alone that Talos restarts for it.
func TestAPatchGoesToOneNodeAfterTheOther(t *testing.T) {
	needs.Slow(t)
	t.Parallel()
	w := newWorld(t, "homelab", "0.02", justPlatform()...)
	w.on()
	w.castle("create").succeeds()
	members := w.hasAQuorum(w.unsealed("talosconfig"))
	k := w.kubernetes(w.unsealed("kubeconfig"))
	boots := k.boots()

	w.live = w.edited("unknown", change{from: "kubernetes:\n", to: "  patches:\n    worker:\n      - machine: {sysctl: {vm.max_map_count: \"262144\"}}\nkubernetes:\n"})
	w.castle("create").failsWith("cluster.yaml:31: talos.patches.worker[0]:", "unknown keys found during decoding: machine: sysctl")
	patches := change{from: "kubernetes:\n", to: "  patches:\n    all:\n      - machine: {sysctls: {vm.max_map_count: \"262144\"}}\n    worker:\n      - machine: {nodeLabels: {pool: fast}}\nkubernetes:\n"}
	w.live = w.edited("patched", patches)
	if plan := w.castle("plan").succeeds().stdout.String(); strings.Count(plan, "will get another machine configuration, without a restart") != 5 {
		t.Errorf("the plan is\n%s", plan)
	}
	w.castle("create").succeeds()
	if got := w.inTurn(); len(got) != 5 {
		t.Errorf("%v were configured", got)
	}
	if now := k.boots(); !equal(now, boots) {
		t.Errorf("the boots were %v and are %v", boots, now)
	}
	w.until(time.Minute, "the workers' label", func() (string, bool) {
		nodes, err := k.typed.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{LabelSelector: "pool=fast"})
		k.must(err)
		return "", len(nodes.Items) == 2
	})

	k.deploys("web", "sandbox-worker-2")
	w.live = w.edited("restarting", patches, change{from: "vmID: 522,", to: "vmID: 522, patches: [{machine: {env: {GRPC_GO_LOG: info}}}],"},
		change{from: "vmID: 525,", to: "vmID: 525, patches: [{machine: {env: {GRPC_GO_LOG: info}}}],"})
	if plan := w.castle("plan").succeeds().stdout.String(); strings.Count(plan, "will get another machine configuration, with a restart") != 2 {
		t.Errorf("the plan is\n%s", plan)
	}
	w.castle("create").succeeds()
	if got := w.inTurn(); !slices.Equal(got, []string{"sandbox-cp-2", "sandbox-worker-2"}) {
		t.Errorf("%v were configured", got)
	}
	now := k.boots()
	for _, node := range w.cluster.Nodes {
		restarted := node.Name == "sandbox-cp-2" || node.Name == "sandbox-worker-2"
		if (now[node.Name] != boots[node.Name]) != restarted || k.isCordoned(node.Name) {
			t.Errorf("%s was restarted: %t, is cordoned: %t", node.Name, now[node.Name] != boots[node.Name], k.isCordoned(node.Name))
		}
	}
	if got := w.hasAQuorum(w.unsealed("talosconfig")); !slices.Equal(got, members) {
		t.Errorf("etcd's members were %v and are %v", members, got)
	}
	w.castle("create").succeeds()
	if got := w.inTurn(); got != nil {
		t.Errorf("%v were configured again", got)
	}
}

// TestMachinesStandOnTwoHostsWithDisksAndAVLAN, each cloned from its own host's template.
func TestMachinesStandOnTwoHostsWithDisksAndAVLAN(t *testing.T) {
	needs.Slow(t)
	t.Parallel()
	const worker = "vmID: 525, host: pve2, cores: 4, memory: 16384, disks: [{size: 100}, "
	spread := []change{
		{file: "live/sandbox/world.yaml", from: "nodes: [pve]", to: "nodes: [pve, pve2]"},
		{file: "live/sandbox/world.yaml", from: "    - {id: 900, name: talos-nocloud}\n", to: "    - {id: 900, name: talos-nocloud}\n    - {id: 901, name: talos-nocloud, node: pve2}\n"},
		{file: described, from: "  template: 900\n", to: "  templates: {pve: 900, pve2: 901}\n"},
		{file: described, from: "  bridge: vmbr0\n", to: "  bridge: vmbr0\n  vlan: 42\n"},
		{file: described, from: "vmID: 525, host: pve, cores: 4, memory: 16384, disks: [{size: 100}", to: worker + "{size: 30, volume: data}"},
	}
	w := newWorld(t, "homelab", "0.02", append(justPlatform(), spread...)...)
	w.on()
	w.castle("create").succeeds()
	k := w.kubernetes(w.unsealed("kubeconfig"))
	k.hasNodes()
	config := func(host string, id int) map[string]any {
		t.Helper()
		var config map[string]any
		if err := w.proxmox(fmt.Sprintf("/nodes/%s/qemu/%d/config", host, id), &config); err != nil {
			t.Fatal(err)
		}
		return config
	}
	for _, node := range w.cluster.Nodes {
		vm := config(node.Host, node.VMID)
		if card := fmt.Sprint(vm["net0"]); !strings.Contains(card, "tag=42") {
			t.Errorf("%s has the network card %s", node.Name, card)
		}
		if further := fmt.Sprint(vm["scsi1"]); strings.Contains(further, "size=30G") != (node.VMID == 525) {
			t.Errorf("%s has the further disk %s", node.Name, further)
		}
	}
	if plan := w.castle("plan").succeeds().stdout.String(); strings.Count(plan, "No changes.") != 2 {
		t.Errorf("the plan is\n%s", plan)
	}
	less := slices.Clone(spread)
	less[4].to = "vmID: 525, host: pve2, cores: 4, memory: 16384, disks: [{size: 100}"
	w.live = w.copyLive("less", append(justPlatform(), less...)...)
	w.castle("create").failsWith("create would take a disk of sandbox-worker-2 away", "nothing was changed")
	larger := slices.Clone(spread)
	larger[4].to = worker + "{size: 60, volume: data}, {size: 5}"
	w.live = w.copyLive("larger", append(justPlatform(), larger...)...)
	w.castle("create").succeeds()
	if vm := config("pve2", 525); !strings.Contains(fmt.Sprint(vm["scsi1"]), "size=60G") || !strings.Contains(fmt.Sprint(vm["scsi2"]), "size=5G") {
		t.Errorf("the disks are %v and %v", vm["scsi1"], vm["scsi2"])
	}
	k.hasNodes()
}

// network is what another CNI's manifests look like: a pod on each node, in the node's own network, that writes where the runtime looks.
const network = `apiVersion: v1
kind: ServiceAccount
metadata: {name: network, namespace: kube-system}
---
apiVersion: apps/v1
kind: DaemonSet
metadata: {name: network, namespace: kube-system}
spec:
  selector: {matchLabels: {app: network}}
  template:
    metadata: {labels: {app: network}}
    spec:
      hostNetwork: true
      serviceAccountName: network
      tolerations: [{operator: Exists}]
      containers:
        - name: agent
          image: quay.io/cilium/cilium:v1.18.0
          volumeMounts: [{name: conf, mountPath: /host/etc/cni/net.d}]
      volumes: [{name: conf, hostPath: {path: /etc/cni/net.d}}]
`

// TestAnotherCNIComesWithTheMachines, before any pod that needs a network.
func TestAnotherCNIComesWithTheMachines(t *testing.T) {
	needs.Slow(t)
	t.Parallel()
	none := change{file: described, from: "  podSubnet: 10.244.0.0/16\n", to: "  podSubnet: 10.244.0.0/16\n  cni: none\n  cniManifests: [cni.yaml]\n"}
	w := newWorld(t, "homelab", "0.02", without(storageFolder, gitopsFolder)...)
	w.live = w.copyLive("cni", append(without(storageFolder, gitopsFolder), none)...)
	if err := os.WriteFile(filepath.Join(w.live, "cni.yaml"), []byte(network), 0o600); err != nil {
		t.Fatal(err)
	}
	w.on()
	w.castle("create").succeeds()
	k := w.kubernetes(w.unsealed("kubeconfig"))
	k.hasNodes()
	k.givesAddresses()
	pods, err := k.typed.CoreV1().Pods("kube-system").List(t.Context(), metav1.ListOptions{LabelSelector: "app=network"})
	if k.must(err); len(pods.Items) != len(w.cluster.Nodes) {
		t.Errorf("the CNI has %d pods", len(pods.Items))
	}
	if nodes := w.event(ends(timeline.KindGate, "platform", "nodes")); nodes.Result != timeline.ResultOK {
		t.Errorf("the gate of the nodes ended %+v", nodes)
	}
	if plan := w.castle("plan").succeeds().stdout.String(); strings.Contains(plan, "will get another machine configuration") {
		t.Errorf("the plan is\n%s", plan)
	}
}

// inTurn are the nodes that the last run has configured in a cluster that was up, in their order. It fails the test where one came while the one
// before was not through, or without the gate.
func (w *world) inTurn() []string {
	w.t.Helper()
	var nodes []string
	gate, busy := false, ""
	for _, event := range w.events() {
		node, configures := strings.CutPrefix(event.Name, "configure ")
		switch {
		case event.Kind == timeline.KindGate && event.Name == "nodes" && event.Phase == timeline.PhaseEnd && event.Result == timeline.ResultOK:
			gate = true
		case strings.HasPrefix(event.Name, "drain ") && event.Phase == timeline.PhaseStart:
			busy = strings.TrimPrefix(event.Name, "drain ")
		case event.Name == "restart "+busy && event.Phase == timeline.PhaseEnd:
			busy = ""
		case configures && event.Phase == timeline.PhaseStart:
			if !gate || busy != "" && busy != node {
				w.t.Errorf("%s is configured while %q is down, the gate before it: %t", node, busy, gate)
			}
			nodes, gate = append(nodes, node), false
		}
	}
	return nodes
}

func equal(a, b map[string]string) bool {
	for key, value := range a {
		if b[key] != value {
			return false
		}
	}
	return len(a) == len(b)
}
