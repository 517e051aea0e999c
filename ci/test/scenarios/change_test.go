//go:build linux

package scenarios

import (
	"slices"
	"testing"
	"time"
)

// TestCreateTakesNoMachineAwayOrDownUnasked: a line that is edited in cluster.yaml is not yet a wish to lose disks, or etcd.
func TestCreateTakesNoMachineAwayOrDownUnasked(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "none", "0", justPlatform()...)
	w.on()
	w.castle("create").succeeds()
	vms, members := w.vms(), w.hasAQuorum(w.unsealed("talosconfig"))
	edited := func(name string, changes ...change) string {
		for i := range changes {
			changes[i].file = "live/sandbox/cluster.yaml"
		}
		return w.copyLive(name, append(justPlatform(), changes...)...)
	}
	create := func(live string, flags ...string) *called {
		c := w.start(live, nil, append([]string{"create"}, flags...)...)
		c.wait(5 * time.Minute)
		return c
	}

	renamed := edited("renamed", change{from: "sandbox-worker-2, role: worker, address: 192.168.77.215, vmID: 525", to: "sandbox-worker-3, role: worker, address: 192.168.77.216, vmID: 526"})
	create(renamed).failsWith("layer platform failed", "create would remove the VM of sandbox-worker-2 with its disks, and nothing was changed", "--allow-replace sandbox-worker-2", resumes)

	more := func(id string) change {
		return change{from: "vmID: " + id + ", host: pve, cores: 4, memory: 8192", to: "vmID: " + id + ", host: pve, cores: 4, memory: 10240"}
	}
	all := edited("all", more("521"), more("522"), more("523"))
	create(all).failsWith("would take down the control planes sandbox-cp-1, sandbox-cp-2, sandbox-cp-3 at the same time", "nothing was changed")
	if got := w.vms(); !slices.Equal(got, vms) {
		t.Errorf("Proxmox had %+v and has %+v", vms, got)
	}

	// One after the other is the way, and what was typed by name is done.
	create(edited("one", more("521"))).succeeds()
	if got := w.hasAQuorum(w.unsealed("talosconfig")); !slices.Equal(got, members) {
		t.Errorf("etcd's members were %v and are %v", members, got)
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
