//go:build linux

package scenarios

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tazlab.net/castle/ci/test/tell"
)

// TestAClusterWhoseStatesAreLostIsAdopted: the machines run, and what they run must not notice.
func TestAClusterWhoseStatesAreLostIsAdopted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "none", "0")
	w.on()
	w.castle("create").succeeds()
	vms, talosconfig := w.vms(), w.unsealed("talosconfig")
	members := w.hasAQuorum(talosconfig)
	k := w.kubernetes(w.unsealed("kubeconfig"))
	identity, pods, starts := k.identity(), k.pods(), w.starts()

	tell.Fault(t, "the states of all layers are removed")
	for _, layer := range []string{"secrets", "platform", "engine", "networking", "storage", "gitops"} {
		if err := os.RemoveAll(filepath.Join(w.state(), layer)); err != nil {
			t.Fatal(err)
		}
	}
	w.castle("create").succeeds()
	if got := w.vms(); !slices.Equal(got, vms) {
		t.Errorf("Proxmox had %+v and has %+v", vms, got)
	}
	if got := w.starts(); !maps.Equal(got, starts) {
		t.Errorf("the machines were started %v times, and are now %v", starts, got)
	}
	if got := w.hasAQuorum(talosconfig); !slices.Equal(got, members) {
		t.Errorf("etcd's members were %v and are %v", members, got)
	}
	if got := k.identity(); got != identity {
		t.Errorf("the cluster was\n%s\nand is\n%s", identity, got)
	}
	if got := k.pods(); !slices.Equal(got, pods) {
		t.Errorf("its pods were\n%s\nand are\n%s", strings.Join(pods, "\n"), strings.Join(got, "\n"))
	}
	w.isWell()
	plan := w.castle("plan").succeeds().stdout.String()
	if strings.Count(plan, "No changes.") != 6 {
		t.Errorf("the plan is\n%s", plan)
	}
}

// pods are all, each with the instant of its start.
func (k kube) pods() (list []string) {
	k.world.t.Helper()
	found, err := k.typed.CoreV1().Pods("").List(k.world.t.Context(), metav1.ListOptions{})
	if err != nil {
		k.world.t.Fatal(err)
	}
	for _, pod := range found.Items {
		if pod.Status.StartTime == nil {
			k.world.t.Fatal(errors.New(pod.Namespace + "/" + pod.Name + " has not started"))
		}
		list = append(list, pod.Namespace+"/"+pod.Name+" "+string(pod.UID)+" since "+pod.Status.StartTime.String())
	}
	slices.Sort(list)
	return list
}
