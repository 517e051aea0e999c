//go:build linux

package scenarios

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/test/tell"
)

// TestWipe: nothing but Proxmox can be relied on. Infisical is not there, and a state is cut off. What is somebody else's stays, in the range
// of ids and beside it; a wipe that was killed is gone on with, and the next create begins anew.
func TestWipe(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "none", "0", append(justPlatform(), change{file: "live/sandbox/world.yaml",
		from: "    - {id: 900, name: talos-nocloud}\n", to: "    - {id: 900, name: talos-nocloud}\n  foreign:\n    - {id: 530, name: db}\n    - {id: 519, name: mail}\n"})...)
	w.on()
	w.castle("create").succeeds()
	before := w.vms()
	tell.Fault(t, "a state is cut off, and Infisical is gone")
	if err := os.WriteFile(filepath.Join(w.state(), "platform", "terraform.tfstate"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	alone := w.copyLive("alone", append(justPlatform(), change{file: "live/sandbox/cluster.yaml", from: "url: http://192.168.77.11:8080", to: "url: http://192.168.77.99:8080"})...)
	call := func(args ...string) *called {
		c := w.start(alone, nil, append([]string{"nuclear-wipe"}, args...)...)
		c.wait(2 * time.Minute)
		return c
	}

	listed := call().succeeds().stdout.String()
	for _, want := range []string{"would be removed", "VM 521 sandbox-cp-1 on pve\n    local-lvm:vm-521-cloudinit\n    local-lvm:vm-521-disk-0\n", "VM 530 db on pve: it has not the tag castle-sandbox\n", "confirm with --confirm sandbox"} {
		if !strings.Contains(listed, want) {
			t.Errorf("%q is not in\n%s", want, listed)
		}
	}
	call("--confirm=blue").failsWith("confirm with --confirm sandbox")
	call("--confirm=sandbox", "--include-untagged=519").failsWith("519 is outside the cluster's range of ids")
	if got := w.vms(); !slices.Equal(got, before) {
		t.Fatalf("Proxmox had %+v and has %+v", before, got)
	}

	killed := w.start(alone, nil, "nuclear-wipe", "--confirm=sandbox")
	w.until(time.Minute, "a VM is gone", func() (string, bool) {
		now := w.vms()
		return fmt.Sprint(now), len(now) < len(before)
	})
	killed.kill()
	killed.wait(time.Minute)
	if said := call("--confirm=sandbox").succeeds().stdout.String(); !strings.Contains(said, "VM 530 db on pve: it has not the tag castle-sandbox") {
		t.Errorf("a wipe says\n%s", said)
	}
	var left []int
	for _, vm := range w.vms() {
		left = append(left, vm.ID)
	}
	if slices.Sort(left); !slices.Equal(left, []int{519, 530, 900}) {
		t.Errorf("Proxmox has %v", left)
	}
	w.hasTheTemplate()
	if copies, err := os.ReadDir(filepath.Join(w.state(), "platform", "copies")); err != nil || len(copies) == 0 {
		t.Errorf("the states have the copies %v, %v", copies, err)
	}

	w.castle("create").succeeds()
	w.hasAQuorum(w.unsealed("talosconfig"))
}
