//go:build linux

package scenarios

import (
	"strings"
	"testing"
	"time"
)

func TestCreateGoesOnAfterItWasKilledAndInterrupted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "homelab", "0.2", justPlatform()...)
	w.on()

	killed := w.start(w.live, nil, "create")
	key := killed.overhear()
	w.hasVMs(2)
	second := w.castle("create")
	second.failsWith("locked by create", "process")
	if second.took > 5*time.Second {
		t.Errorf("the second create was refused after %s", second.took)
	}
	killed.kill()
	killed.wait(time.Minute)
	w.leaksNothing(key)
	if left := w.vms(); len(left) < 3 {
		t.Errorf("the kill left nothing to go on from: %+v", left)
	}

	interrupted := w.start(w.live, nil, "create")
	w.hasVMs(4)
	interrupted.interrupt()
	interrupted.wait(2 * time.Minute)
	interrupted.failsWith("interrupted", resumes)

	w.castle("create").succeeds()
	w.hasExactlyItsVMs()
	w.hasAQuorum(w.unsealed("talosconfig"))
	w.castle("create").succeeds()
	if log := w.toolLog("platform"); !strings.Contains(log, "No changes.") {
		t.Errorf("the machines were changed:\n%s", log)
	}
	w.leaksNothing(key)
}

func TestDestroyRemovesWhatAKilledCreateLeft(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "homelab", "0.2", justPlatform()...)
	w.on()
	killed := w.start(w.live, nil, "create")
	w.hasVMs(2)
	killed.kill()
	killed.wait(time.Minute)
	if left := w.vms(); len(left) < 3 {
		t.Errorf("the kill left nothing: %+v", left)
	}
	w.castle("destroy", "--confirm=sandbox").succeeds()
	if left := w.vms(); len(left) != 1 {
		t.Errorf("Proxmox has %+v", left)
	}
	w.hasTheTemplate()
}

// hasVMs waits until a number of the cluster's VMs are there.
func (w *world) hasVMs(n int) {
	w.t.Helper()
	w.until(3*time.Minute, "VMs are there", func() (string, bool) {
		found := 0
		for _, vm := range w.vms() {
			if vm.Template == 0 {
				found++
			}
		}
		return strings.Repeat("#", found), found >= n
	})
}
