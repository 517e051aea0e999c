//go:build linux

package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"tazlab.net/castle/ci/cluster/timeline"
	"tazlab.net/castle/ci/test/needs"
	"tazlab.net/castle/ci/test/tell"
)

// TestCreateTakesNoMachineAwayUnasked: a line that is edited in cluster.yaml is not yet a wish to lose disks.
func TestCreateTakesNoMachineAwayUnasked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "none", "0", justPlatform()...)
	w.on()
	w.castle("create").succeeds()
	vms := w.vms()
	create := func(live string, flags ...string) *called {
		c := w.start(live, nil, append([]string{"create"}, flags...)...)
		c.wait(5 * time.Minute)
		return c
	}

	tell.Fault(t, "a worker has another name, address and id in cluster.yaml")
	renamed := w.edited("renamed", change{from: "sandbox-worker-2, role: worker, address: 192.168.77.215, vmID: 525", to: "sandbox-worker-3, role: worker, address: 192.168.77.216, vmID: 526"})
	create(renamed).failsWith("layer platform failed", "create would remove the VM of sandbox-worker-2 with its disks, and nothing was changed", "--allow-replace sandbox-worker-2", resumes)
	if got := w.vms(); !slices.Equal(got, vms) {
		t.Errorf("Proxmox had %+v and has %+v", vms, got)
	}

	create(renamed, "--allow-replace=sandbox-worker-2").succeeds()
	var names []string
	for _, vm := range w.vms() {
		names = append(names, vm.Name)
	}
	if slices.Contains(names, "sandbox-worker-2") || !slices.Contains(names, "sandbox-worker-3") {
		t.Errorf("Proxmox has the VMs %v", names)
	}
}

// more gives a control plane more memory.
func more(id string) change {
	return change{from: "vmID: " + id + ", host: pve, cores: 4, memory: 8192", to: "vmID: " + id + ", host: pve, cores: 4, memory: 10240"}
}

// TestNodesAreRestartedOneAtATime: more memory for all takes a restart of each, and etcd and the pods are to notice nothing.
func TestNodesAreRestartedOneAtATime(t *testing.T) {
	needs.Slow(t)
	t.Parallel()
	w := newWorld(t, "homelab", "0.02", justPlatform()...)
	w.on()
	w.castle("create").succeeds()
	members := w.hasAQuorum(w.unsealed("talosconfig"))
	k := w.kubernetes(w.unsealed("kubeconfig"))
	boots := k.boots()
	k.deploys("web", "sandbox-worker-2")
	k.runs("sandbox-worker-2", "alone")
	k.cordons("sandbox-worker-1", true)

	w.live = w.edited("all", more("521"), more("522"), more("523"),
		change{from: "vmID: 524, host: pve, cores: 4", to: "vmID: 524, host: pve, cores: 6"}, change{from: "vmID: 525, host: pve, cores: 4, memory: 16384, disks: [{size: 100}]", to: "vmID: 525, host: pve, cores: 6, memory: 16384, disks: [{size: 120}]"})

	// Interrupted while a node is drained, while OpenTofu changes it, and while it starts.
	for _, is := range []func(timeline.Event) bool{
		begins("drain "),
		func(e timeline.Event) bool { return e.Kind == timeline.KindLayer && e.Layer == "platform" },
		begins("restart "),
	} {
		before := w.lastRun()
		c := w.start(w.live, nil, "create")
		w.until(2*time.Minute, "the instant of the kill", func() (string, bool) {
			return c.stderr.String(), w.lastRun() != before && w.noted(is)
		})
		c.kill()
		c.wait(time.Minute)
	}
	// And while one is off, whose disk does not grow in any other way.
	c := w.start(w.live, nil, "create")
	w.until(4*time.Minute, "sandbox-worker-2 is off", func() (string, bool) {
		return c.stderr.String(), slices.ContainsFunc(w.vms(), func(vm vm) bool { return vm.ID == 525 && vm.Status == "stopped" })
	})
	c.kill()
	c.wait(time.Minute)
	if on := slices.ContainsFunc(w.vms(), func(vm vm) bool { return vm.ID == 525 && vm.Status == "running" }); on {
		t.Fatal("the kill came too late")
	}
	events := w.events()
	w.castle("create").succeeds()
	down, drained := "", []string{}
	for _, event := range append(events, w.events()...) {
		switch node, is := strings.CutPrefix(event.Name, "drain "); {
		case is && event.Phase == timeline.PhaseStart:
			if down != "" && down != node {
				t.Errorf("%s is drained while %s is down", node, down)
			}
			down, drained = node, append(drained, node)
		case event.Name == "restart "+down && event.Phase == timeline.PhaseEnd:
			down = ""
		}
	}
	if len(drained) < 4 || drained[len(drained)-1] != "sandbox-worker-2" { // the killed runs had come to the others
		t.Errorf("only %v were drained", drained)
	}
	if got := w.hasAQuorum(w.unsealed("talosconfig")); !slices.Equal(got, members) {
		t.Errorf("etcd's members were %v and are %v", members, got)
	}
	k.hasNodes()
	now := k.boots()
	for _, node := range w.cluster.Nodes {
		if now[node.Name] == boots[node.Name] {
			t.Errorf("%s was not restarted", node.Name)
		}
		if cordoned := k.isCordoned(node.Name); cordoned != (node.Name == "sandbox-worker-1") {
			t.Errorf("%s is cordoned: %v", node.Name, cordoned)
		}
	}
	k.must2(k.typed.CoreV1().Pods("default").Get(t.Context(), "alone", metav1.GetOptions{}))
	var config struct {
		Cores int    `json:"cores"`
		Disk  string `json:"scsi0"`
	}
	if err := w.proxmox("/nodes/pve/qemu/525/config", &config); err != nil || config.Cores != 6 || !strings.HasSuffix(config.Disk, "size=120G") {
		t.Errorf("sandbox-worker-2 has %+v: %v", config, err)
	}
	if plan := w.castle("plan").succeeds().stdout.String(); strings.Count(plan, "No changes.") != 2 {
		t.Errorf("the plan is\n%s", plan)
	}

	// A run that was killed between the change and the restart leaves nothing for OpenTofu to see.
	k.must2(k.typed.CoreV1().Nodes().Patch(t.Context(), "sandbox-cp-2", types.MergePatchType,
		fmt.Appendf(nil, `{"metadata":{"annotations":{"castle.tazlab.net/restart":"{\"boot\":\"%s\",\"changing\":true}"}},"spec":{"unschedulable":true}}`, now["sandbox-cp-2"]), metav1.PatchOptions{}))
	w.castle("create").succeeds()
	if k.boots()["sandbox-cp-2"] == now["sandbox-cp-2"] || k.isCordoned("sandbox-cp-2") {
		t.Error("sandbox-cp-2 was not restarted, or is still cordoned")
	}
	w.castle("create").succeeds()
	if log := w.toolLog("platform"); !strings.Contains(log, "No changes.") {
		t.Errorf("the machines were changed:\n%s", log)
	}
}

// boots are the nodes' boots.
func (k kube) boots() map[string]string {
	k.world.t.Helper()
	nodes, err := k.typed.CoreV1().Nodes().List(k.world.t.Context(), metav1.ListOptions{})
	k.must(err)
	boots := map[string]string{}
	for _, node := range nodes.Items {
		boots[node.Name] = node.Status.NodeInfo.BootID
	}
	return boots
}
