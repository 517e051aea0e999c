//go:build linux

package scenarios

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/sandbox/talosnodes"
)

// realNodes is the variable that asks for real Talos nodes: what scripts/setup-talos.sh prints, with colons between.
const realNodes = "CASTLE_TALOS_NODES"

// containers is the sandbox as containers can be it: they have no disk of their own, no kernel modules and no extensions, and so no Longhorn.
func containers() []change {
	return []change{
		{file: described, from: "  schematic: 613e1592b2da41ae5e265e8789429f22e121aab91cb4deb6bc3c0b6262961245\n  extensions: [siderolabs/iscsi-tools, siderolabs/util-linux-tools]\n  kernelModules: [iscsi_tcp, dm_crypt]\n",
			to: "  schematic: " + config.Schematic(nil) + "\n  extensions: []\n"},
		{file: described, from: "  diskEncryption: {ephemeral: nodeID}\n", to: "  diskEncryption: {ephemeral: none}\n"},
		{file: described, from: longhorn, to: "storage: none\n"},
	}
}

// TestCreateOnRealNodes is a cluster's life on Talos itself, with real kubelets and pods that are containers: nothing of what runs on the nodes
// is simulated.
func TestCreateOnRealNodes(t *testing.T) {
	w := newRealWorld(t)
	w.castle("create").succeeds()
	w.balancerAnswered()
	w.hasExactlyItsVMs()
	talosconfig := w.unsealed("talosconfig")
	members := w.hasAQuorum(talosconfig)
	k := w.kubernetes(w.unsealed("kubeconfig"))
	k.hasNodes()
	k.givesAddresses()
	k.startedAllOnce()
	k.follows(w.head(), seedTag)
	w.isWell()
	k.answersOnTheWire()

	w.castle("create").succeeds()
	w.changedNothing()
	w.reliedOnTheAPIServersAge()
	if got := w.hasAQuorum(talosconfig); !slices.Equal(got, members) {
		t.Errorf("etcd's members were %v and are %v", members, got)
	}

	const next = "blog-1111111"
	w.pushTag(seedTag, next)
	k.reconcile()
	k.lacksTheImage(next)
	w.pushImage(next)
	k.follows(w.head(), next)

	w.castle("destroy", "--confirm=sandbox").succeeds()
	w.nothingIsLeft()
}

// TestCreateOnRealNodesIsInterrupted at a random instant, whichever it is, goes on with one more call, and nuclear-wipe takes all of it away.
func TestCreateOnRealNodesIsInterrupted(t *testing.T) {
	w := newRealWorld(t)
	create := w.start(w.live, nil, "create")
	select {
	case <-create.done:
	case <-time.After(rand.N(3 * time.Minute)):
	}
	create.kill()
	t.Logf("it was killed after %s, with\n%s", time.Since(create.began).Round(time.Second), create.stderr.String())
	w.castle("create").succeeds()
	w.hasExactlyItsVMs()
	w.hasAQuorum(w.unsealed("talosconfig"))
	k := w.kubernetes(w.unsealed("kubeconfig"))
	k.hasNodes()
	k.givesAddresses()
	k.follows(w.head(), seedTag)
	w.isWell()
	w.castle("nuclear-wipe", "--confirm=sandbox").succeeds()
	if vms := w.vms(); len(vms) != 1 {
		t.Errorf("Proxmox has %+v", vms)
	}
}

// newRealWorld is on, and its VMs are real Talos nodes of what scripts/setup-talos.sh has built.
func newRealWorld(t *testing.T) *world {
	t.Helper()
	made := filepath.SplitList(os.Getenv(realNodes))
	if len(made) != 10 {
		t.Skip("NOT RUN: it needs what real Talos nodes are made of; `make drill-talos CREATE=1` builds it")
	}
	w := newWorld(t, "homelab", "0.05", containers()...)
	w.patience = 20 * time.Minute
	w.nodes = []string{"--nodes=talos", "--layers=" + filepath.Join(repository, "terragrunt"), "--node=" + made[0], "--talos=" + made[1], "--containerd=" + made[2],
		"--kubelet=" + made[5], "--coredns=" + made[6], "--flannel=" + made[7], "--flannel-cni=" + made[8], "--speaker=" + filepath.Join(made[9], "speaker")}
	var err error
	if w.blog, err = talosnodes.PageImage("", made[0]).Build(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			w.keepRealNodes()
		}
	})
	w.on()
	return w
}

// answersOnTheWire asks the blog at an address that a speaker announces, from beside the nodes.
func (k kube) answersOnTheWire() {
	k.world.t.Helper()
	services, ctx := k.typed.CoreV1().Services("blog"), k.world.t.Context()
	const name = "wire"
	_, err := services.Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.ServiceSpec{
		Type: corev1.ServiceTypeLoadBalancer, Ports: []corev1.ServicePort{{Port: 80}}, Selector: map[string]string{"app.kubernetes.io/name": "hugo-blog"},
	}}, metav1.CreateOptions{})
	k.must(err)
	defer func() { k.must(services.Delete(ctx, name, metav1.DeleteOptions{})) }()
	client := http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DialContext: k.world.dial, DisableKeepAlives: true}}
	k.world.until(time.Minute, "the blog answers at its address", func() (string, bool) {
		service, err := services.Get(ctx, name, metav1.GetOptions{})
		if err != nil || len(service.Status.LoadBalancer.Ingress) == 0 {
			return fmt.Sprintf("no address yet, %v", err), false
		}
		answer, err := client.Get("http://" + service.Status.LoadBalancer.Ingress[0].IP)
		if err != nil {
			return err.Error(), false
		}
		defer answer.Body.Close()
		return answer.Status, answer.StatusCode == http.StatusOK
	})
}

// keepRealNodes copies what the nodes said to a folder that outlives the test.
func (w *world) keepRealNodes() {
	folder, err := os.MkdirTemp("", "talos-nodes-")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, pattern := range []string{"vm-*/console.log", "vm-*/disk/var/log/*/*.log", "vm-*/disk/var/log/*.log", "vm-*/disk/var/log/pods/*/*/*.log"} {
		files, _ := filepath.Glob(filepath.Join(w.dir(), "talos", "nodes", pattern))
		for _, file := range files {
			below, _ := filepath.Rel(filepath.Join(w.dir(), "talos", "nodes"), file)
			_ = os.MkdirAll(filepath.Dir(filepath.Join(folder, below)), 0o755)
			if data, err := os.ReadFile(file); err == nil {
				_ = os.WriteFile(filepath.Join(folder, below), data, 0o644)
			}
		}
	}
	w.t.Logf("what the nodes say is in %s", folder)
}
