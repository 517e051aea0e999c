//go:build linux

package scenarios

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	admission "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
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

	release := k.holdDaemonSets("metallb-system")
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
	release()

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

// holdDaemonSets has Helm stand still in the middle of a release, so that a kill meets it there on any machine: a webhook that takes
// connections and never answers is asked about each DaemonSet of a namespace, for as long as the API server waits for a webhook at
// most. After that, and once it is released, DaemonSets are made as if nobody had been asked.
func (k kube) holdDaemonSets(namespace string) (release func()) {
	t := k.world.t
	t.Helper()
	const address = "127.0.0.1:9443"
	silent, err := k.world.listen(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	name := "silent.example.com"
	configurations := k.typed.AdmissionregistrationV1().ValidatingWebhookConfigurations()
	_, err = configurations.Create(t.Context(), &admission.ValidatingWebhookConfiguration{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Webhooks: []admission.ValidatingWebhook{{
			Name:              name,
			ClientConfig:      admission.WebhookClientConfig{URL: new("https://" + address)},
			NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}},
			Rules: []admission.RuleWithOperations{{
				Operations: []admission.OperationType{admission.Create},
				Rule:       admission.Rule{APIGroups: []string{"apps"}, APIVersions: []string{"v1"}, Resources: []string{"daemonsets"}},
			}},
			FailurePolicy:           new(admission.Ignore),
			SideEffects:             new(admission.SideEffectClassNone),
			TimeoutSeconds:          new(int32(30)),
			AdmissionReviewVersions: []string{"v1"},
		}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := configurations.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
