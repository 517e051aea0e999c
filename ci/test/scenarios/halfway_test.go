//go:build linux

package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tazlab.net/castle/ci/cluster/timeline"
	"tazlab.net/castle/ci/test/tell"
)

func TestCreateGoesOnAfterItWasKilledAndInterrupted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "homelab", "0.2", justPlatform()...)
	w.on()

	killed := w.start(w.live, nil, "create")
	key := killed.overhear()
	w.hasVMs(2)
	tell.Fault(t, "a second create while the first one runs")
	second := w.castle("create")
	second.failsWith("locked by create", "process")
	if second.took > time.Minute {
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

// TestCreateGoesOnAfterItWasKilledWhileHelmInstalled is the kill that Helm itself never gets over: its record says for ever that an
// operation is in progress.
func TestCreateGoesOnAfterItWasKilledWhileHelmInstalled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "none", "0", without(engineFolder, storageFolder, gitopsFolder)...)
	w.on()
	w.start(w.copyLive("platform", justPlatform()...), nil, "create").wait(5 * time.Minute)
	k := w.kubernetes(w.unsealed("kubeconfig"))
	records := func() (found []string) {
		list, err := k.typed.CoreV1().Secrets("metallb-system").List(t.Context(), metav1.ListOptions{LabelSelector: "owner=helm"})
		if err != nil {
			return []string{err.Error()}
		}
		for _, record := range list.Items {
			found = append(found, record.Labels["version"]+" "+record.Labels["status"])
		}
		return found
	}

	killed := w.start(w.live, nil, "create")
	w.until(3*time.Minute, "Helm installs MetalLB", func() (string, bool) {
		seen := records()
		return fmt.Sprint(seen), slices.Equal(seen, []string{"1 pending-install"})
	})
	killed.kill()
	killed.wait(time.Minute)
	if left := records(); !slices.Equal(left, []string{"1 pending-install"}) {
		t.Fatalf("the kill came too late: Helm's records are %v", left)
	}

	w.castle("create").succeeds()
	if left := records(); !slices.Equal(left, []string{"1 deployed"}) {
		t.Errorf("Helm's records are %v", left)
	}
	step := func(e timeline.Event) bool {
		return e.Name == "Helm release metallb" && e.Phase == timeline.PhaseWaiting
	}
	if cause := w.event(step).Cause; !strings.HasPrefix(cause, "an interrupted run left revision 1 pending-install at ") {
		t.Errorf("of the freed release the time line says %q", cause)
	}
	k.givesAddresses()
}
