//go:build linux

package scenarios

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/cluster/timeline"
	"tazlab.net/castle/ci/test/tell"
)

// tags are those of the cluster's VMs, by name.
func (w *world) tags() map[string]string {
	w.t.Helper()
	tags := map[string]string{}
	for _, vm := range w.vms() {
		if vm.Template == 0 {
			tags[vm.Name] = vm.Tags
		}
	}
	return tags
}

// TestVMsThatAnEarlierCastleTaggedAreTaggedAnewInPlace: their tags are bare words, which a cluster could be called,
// and their state has OpenTofu take disks with them that are somebody else's.
func TestVMsThatAnEarlierCastleTaggedAreTaggedAnewInPlace(t *testing.T) {
	t.Parallel()
	const module = "modules/platform-proxmox/main.tf"
	w := newWorld(t, "none", "0", append(justPlatform(),
		change{file: module, from: `"castle-${var.cluster.name}"`, to: "var.cluster.name"},
		change{file: module, from: "  delete_unreferenced_disks_on_destroy = false\n", to: ""})...)
	w.on()
	w.castle("create").succeeds()
	if got := w.tags(); got["sandbox-cp-1"] != "castle;controlplane;sandbox" || got["sandbox-worker-1"] != "castle;sandbox;worker" {
		t.Fatalf("the VMs have the tags %v", got)
	}
	starts, members := w.starts(), w.hasAQuorum(w.unsealed("talosconfig"))

	tell.Fault(t, "the VMs have the tags that an earlier castle gave them")
	w.live = w.copyLive("now", justPlatform()...)
	if plan := w.castle("plan").succeeds().stdout.String(); !strings.Contains(plan, "0 to add, 5 to change, 0 to destroy") {
		t.Errorf("the plan is\n%s", plan)
	}
	w.castle("create").succeeds()
	want := map[string]string{}
	for _, node := range w.cluster.Nodes {
		want[node.Name] = "castle;castle-sandbox;" + node.Role
	}
	if got := w.tags(); !maps.Equal(got, want) {
		t.Errorf("the VMs have the tags %v", got)
	}
	if got := w.starts(); !maps.Equal(got, starts) {
		t.Errorf("the machines were started %v times, and are now %v", starts, got)
	}
	if got := w.hasAQuorum(w.unsealed("talosconfig")); !slices.Equal(got, members) {
		t.Errorf("etcd's members were %v and are %v", members, got)
	}
	if plan := w.castle("plan").succeeds().stdout.String(); strings.Contains(plan, "to change") {
		t.Errorf("the plan is\n%s", plan)
	}
	tell.Observation(t, 0, "the VMs have the tag castle-sandbox, and were neither restarted nor replaced")
	w.castle("destroy", "--confirm=sandbox").succeeds()
	w.nothingIsLeft()
}

// TestAnOldNoteTakesNoVMAway: a create is killed on one machine, and another machine, which does not share its
// states, makes the cluster since.
func TestAnOldNoteTakesNoVMAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "homelab", "0.2", justPlatform()...)
	w.on()
	killed := w.start(w.live, nil, "create")
	w.hasVMs(2)
	killed.kill()
	killed.wait(time.Minute)
	w.until(2*time.Minute, "Proxmox has ended what it cloned", func() (string, bool) { // a clone has its name at its end
		vms := w.vms()
		return fmt.Sprint(vms), !slices.ContainsFunc(vms, func(vm vm) bool { return strings.HasPrefix(vm.Name, "VM ") })
	})

	w.flags = []string{"--state=" + w.state() + "-2"}
	w.castle(append([]string{"nuclear-wipe", "--confirm=sandbox"}, w.untagged()...)...).succeeds()
	w.castle("create").succeeds()
	starts, vms, members := w.starts(), w.vms(), w.hasAQuorum(w.unsealed("talosconfig"))

	tell.Fault(t, "the first machine still has its note of VMs that it had begun")
	w.flags = nil
	w.castle("create").succeeds()
	if got := w.starts(); !maps.Equal(got, starts) {
		t.Errorf("the machines were started %v times, and are now %v", starts, got)
	}
	if got := w.vms(); !slices.Equal(got, vms) {
		t.Errorf("Proxmox had %+v and has %+v", vms, got)
	}
	if got := w.hasAQuorum(w.unsealed("talosconfig")); !slices.Equal(got, members) {
		t.Errorf("etcd's members were %v and are %v", members, got)
	}
	const said = "it has the tag of cluster sandbox by now: it is not removed, but taken into the state"
	if cause := w.event(func(e timeline.Event) bool {
		return strings.HasPrefix(e.Name, "VM 52") && e.Phase == timeline.PhaseWaiting
	}).Cause; !strings.Contains(cause, said) {
		t.Errorf("of a VM that it leaves alone create says %q", cause)
	}
	tell.Observation(t, 0, "%s", said)
	if plan := w.castle("plan").succeeds().stdout.String(); strings.Contains(plan, "to change") {
		t.Errorf("the plan is\n%s", plan)
	}
}

// untagged names the VMs at the nodes' ids that have no tag yet to a wipe.
func (w *world) untagged() (flags []string) {
	w.t.Helper()
	for _, vm := range w.vms() {
		if vm.Tags == "" && vm.Template == 0 {
			flags = append(flags, fmt.Sprintf("--include-untagged=%d", vm.ID))
		}
	}
	return flags
}
