package talos_test

import (
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/talos"
)

// metal is a world whose machines were not cloned: each was started from Sidero Labs' ISO, which has no extension.
func metal(t *testing.T) *world {
	t.Helper()
	w := newWorld(t, homelab(t, 0))
	w.cluster.Platform = config.PlatformTalos
	for i := range w.cluster.Nodes {
		w.cluster.Nodes[i].InstallDisk = "/dev/nvme0n1"
	}
	w.powerOn()
	return w
}

func (w *world) states() string {
	w.t.Helper()
	var states []string
	for _, status := range w.dial().Status(w.t.Context()) {
		states = append(states, status.State)
	}
	return strings.Join(states, " ")
}

func (w *world) giveBack() {
	w.t.Helper()
	access := w.dial()
	for _, node := range w.cluster.Nodes {
		if err := access.GiveBack(w.t.Context(), node.Name, false); err != nil {
			w.t.Fatal(err)
		}
	}
	for _, node := range w.cluster.Nodes {
		if err := access.AwaitMaintenance(w.t.Context(), node.Name, time.Minute, func(string) {}); err != nil {
			w.t.Fatal(err)
		}
	}
}

// A machine that castle did not make is installed from what is described, whatever it was started from, and given back as one that holds
// nothing: another cluster can be made on it, with another PKI.
func TestMachinesThatAreThereAreInstalledAndGivenBack(t *testing.T) {
	w := metal(t)
	w.mustCreate()
	w.giveBack()
	if got := w.states(); got != "maintenance maintenance maintenance maintenance maintenance" {
		t.Errorf("they are %s", got)
	}
	w.renew()
	if report, _ := w.mustCreate(); report.Bootstraps != 1 {
		t.Errorf("%+v", report)
	}
}

// Who has not the cluster's own PKI takes nothing away.
func TestAMachineOfAnotherClusterIsNotGivenBack(t *testing.T) {
	w := metal(t)
	w.mustCreate()
	w.renew()
	if got := w.states(); got != "ghost ghost ghost ghost ghost" {
		t.Errorf("they are %s", got)
	}
	for _, node := range w.cluster.Nodes {
		if err := w.dial().GiveBack(t.Context(), node.Name, false); err == nil {
			t.Errorf("%s takes it", node.Name)
		}
		if stage := w.fleet.Stage(node.VMID); stage != "running" {
			t.Errorf("%s is %s", node.Name, stage)
		}
	}
	if err := w.dial().AwaitMaintenance(t.Context(), "sandbox-cp-1", time.Millisecond, func(string) {}); err == nil || !strings.Contains(err.Error(), "is not in maintenance mode after 1ms") {
		t.Errorf("got %v", err)
	}
}

// Talos stays on the disk of a machine that was given back, and does not install itself over it.
func TestAnInstalledTalosHasToBeTheOneThatIsDescribed(t *testing.T) {
	w := metal(t)
	w.mustCreate()
	w.giveBack()
	was := w.cluster.Talos
	w.cluster.Talos.Version = "v1.13.8"
	report, _, err := w.create()
	as[*talos.InstalledError](t, err)
	for _, want := range []string{"sandbox-worker-2 (", "it runs Talos v1.13.9, not v1.13.8", "it was not configured", was.Schematic + "/v1.13.8/metal-amd64.iso"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in: %v", want, err)
		}
	}
	if got := w.states(); report.Changed() || strings.Contains(got, "configured") {
		t.Errorf("they are %s, and %+v", got, report)
	}
	w.cluster.Talos = was
	w.mustCreate()
}

// Before a cluster has a PKI, whoever has one is somebody else's.
func TestMachinesAreLookedAtWithoutAPKI(t *testing.T) {
	w := metal(t)
	seen := func() string {
		access, err := talos.Dial(w.cluster, nil, w.options())
		if err != nil {
			t.Fatal(err)
		}
		defer access.Close()
		var states []string
		for _, status := range access.Status(t.Context()) {
			states = append(states, status.State)
		}
		return strings.Join(states, " ")
	}
	for end := time.Now().Add(time.Minute); seen() != "maintenance maintenance maintenance maintenance maintenance"; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("they are %s", seen())
		}
	}
	w.mustCreate()
	if err := w.fleet.PowerOff(w.cluster.Nodes[4].VMID); err != nil {
		t.Fatal(err)
	}
	if got := seen(); got != "ghost ghost ghost ghost silent" {
		t.Errorf("they are %s", got)
	}
}
