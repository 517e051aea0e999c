//go:build linux

package scenarios

import (
	"encoding/json"
	"strings"
	"syscall"
	"testing"
	"time"

	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/timeline"
	"tazlab.net/castle/ci/test/needs"
	"tazlab.net/castle/ci/test/tell"
)

// Layers' folders.
const (
	engineFolder     = "3-engine"
	networkingFolder = "4-networking"
	storageFolder    = "5-storage"
	gitopsFolder     = "6-gitops"
)

// justPlatform leaves out all that is built on the machines.
func justPlatform() []change {
	return without(engineFolder, networkingFolder, storageFolder, gitopsFolder)
}

const resumes = "dagger call create --cluster sandbox"

func TestMissingSecretsAreAllNamedAndNothingStarts(t *testing.T) {
	t.Parallel()
	tell.Fault(t, "Infisical lacks GITOPS_USERNAME")
	w := newWorld(t, "none", "0", change{file: "live/sandbox/world.yaml", from: "            GITOPS_USERNAME: flux\n"})
	w.on("secret-missing=SOPS_AGE_KEY")
	w.castle("create").failsWith("layer secrets failed", "SOPS_AGE_KEY", "GITOPS_USERNAME", resumes)
	if w.layerResult("secrets") != "failed" {
		t.Errorf("the layer secrets ended %q", w.layerResult("secrets"))
	}
	for _, layer := range []string{"platform", "engine", "networking", "storage", "gitops"} {
		if w.started(layer) {
			t.Errorf("the layer %s was started", layer)
		}
	}
	if vms := w.vms(); len(vms) != 1 {
		t.Errorf("Proxmox has %+v", vms)
	}
}

func TestAnInvalidDescriptionStartsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "none", "0")
	w.on()
	w.live = w.copyLive("invalid",
		change{file: "live/sandbox/cluster.yaml", from: "address: 192.168.77.212", to: "address: 192.168.78.212"},
		change{file: "live/sandbox/cluster.yaml", from: "address: 192.168.77.213", to: "address: 192.168.77.1"},
		change{file: "live/sandbox/cluster.yaml", from: "address: 192.168.77.215", to: "address: 192.168.77.214"},
		change{file: "live/sandbox/cluster.yaml", from: "worker-1, role: worker", to: "worker-1, role: controlplane"})
	tell.Fault(t, "four mistakes in cluster.yaml")
	for _, command := range []string{"create", "plan"} {
		said := w.castle(command).failsWith("192.168.78.212", "192.168.77.1", "192.168.77.214", "4").stderr.String()
		if lines := strings.Count(strings.TrimSpace(said), "\n") + 1; lines < 4 {
			t.Errorf("4 mistakes in %d lines:\n%s", lines, said)
		}
	}
	if w.lastRun() != "" {
		t.Errorf("there is a record of a run: %s", w.lastRun())
	}
	if vms := w.vms(); len(vms) != 1 {
		t.Errorf("Proxmox has %+v", vms)
	}
	if kept := w.infisical(); kept["TALOS_SECRETS"] != "" {
		t.Error("machine secrets were made")
	}
}

func TestAGhostIsNamedWithTheWayOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "none", "0", justPlatform()...)
	w.on("ghosts=522")
	began := time.Now()
	w.castle("create").failsWith("layer platform failed", "sandbox-cp-2 (192.168.77.212) remembers another cluster",
		"destroy the cluster and then create it", resumes)
	if took := time.Since(began); took > 4*time.Minute {
		t.Errorf("it took %s to find out", took)
	}
	if w.layerResult("platform") != "failed" {
		t.Errorf("the layer platform ended %q", w.layerResult("platform"))
	}
	w.castle("destroy", "--confirm=sandbox").succeeds()
	w.castle("create").succeeds()
	w.hasExactlyItsVMs()
	w.hasAQuorum(w.unsealed("talosconfig"))
}

func TestTheGateHoldsUntilEachAPIServerAnswers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "none", "0", justPlatform()...)
	w.on("apiserver-restarts=20s") // the virtual IP is another one's meanwhile, and steady
	w.castle("create").succeeds()
	refused := w.event(func(e timeline.Event) bool {
		return strings.HasPrefix(e.Name, "virtual IP") && e.Phase == timeline.PhaseWaiting && strings.Contains(e.Cause, "2 of 3 ready; sandbox-cp-")
	})
	if refused.Kind == "" {
		t.Fatal("the gate saw no API server refuse while the virtual IP answered")
	}
	opened := w.event(ends(timeline.KindGate, "platform", "virtual IP"))
	tell.Observation(t, 0, "%s; the gate opened %s later", refused.Cause, opened.Time.Sub(refused.Time))
	if !opened.Time.After(refused.Time) {
		t.Errorf("the gate opened at %s, and an API server refused at %s", opened.Time, refused.Time)
	}
}

func TestTheLayersOutlastAnAPIServerThatRestarts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "none", "0", without(storageFolder, gitopsFolder)...)
	w.on("apiserver-ends=10s")
	w.castle("create").succeeds()
	const gate = "the API, for the tools"
	waited := w.event(func(e timeline.Event) bool { return e.Name == gate && e.Phase == timeline.PhaseWaiting })
	if end := w.event(ends(timeline.KindGate, layers.Platform, gate)); waited.Kind == "" || end.Result != timeline.ResultOK {
		t.Errorf("the tools' wait for the API ended with %+v", end)
	}
	tell.Observation(t, 0, "the tools waited for the API: %s", waited.Cause)
}

func TestWhatDockerHubRefusesIsToldAndOutlasted(t *testing.T) {
	needs.Slow(t)
	t.Parallel()
	w := newWorld(t, "none", "0", without(engineFolder, networkingFolder, gitopsFolder)...)
	w.on("hub-limit=45s")
	w.castle("create").succeeds()
	refused := w.event(func(e timeline.Event) bool {
		return e.Layer == "storage" && e.Phase == timeline.PhaseWaiting && strings.Contains(e.Cause, "cannot pull longhornio/longhorn-manager:")
	})
	if !strings.Contains(refused.Cause, "toomanyrequests") {
		t.Errorf("no gate told what Docker Hub says: %+v", refused)
	}
	tell.Observation(t, 0, "%s", refused.Cause)
}

func TestAMachineFromAnotherTemplateIsNamed(t *testing.T) {
	needs.Slow(t)
	t.Parallel()
	w := newWorld(t, "none", "0", justPlatform()...)
	w.on("wrong-template=iscsi-tools")
	w.castle("create").failsWith("layer platform failed", "sandbox-worker-1 was cloned from a template that is not what cluster.yaml describes",
		"it has no siderolabs/iscsi-tools", "it was not configured", "destroy and create", resumes)
	w.castle("destroy", "--confirm=sandbox").succeeds()
	w.off(syscall.SIGTERM)
	w.on()
	w.castle("create").succeeds()
	w.hasExactlyItsVMs()
	w.hasAQuorum(w.unsealed("talosconfig"))
}

func TestAMachineAtAnotherAddressIsNamed(t *testing.T) {
	needs.Slow(t)
	t.Parallel()
	w := newWorld(t, "none", "0", justPlatform()...)
	w.on("dhcp-drift=523")
	w.castle("create").failsWith("layer platform failed", "sandbox-cp-3", "192.168.77.213", "static address", resumes)
}

func TestAFailedCloneIsToldInProxmoxsWordsAndTheNextCreateGoesOn(t *testing.T) {
	needs.Slow(t)
	t.Parallel()
	w := newWorld(t, "none", "0", justPlatform()...)
	w.on("clone-fails=524")
	failed := w.castle("create", "--format=json").failsWith("layer platform failed", "free space in thin pool pve/data reached threshold", resumes)
	var result run.Result
	if err := json.Unmarshal(failed.stdout.Bytes(), &result); err != nil || result.Timeline.Failure == nil || result.Timeline.Failure.Layer != "platform" {
		t.Errorf("%v: the result of the failed run is\n%s", err, failed.stdout.String())
	}
	for _, vm := range w.vms() {
		if vm.ID == 524 {
			t.Errorf("the VM that could not be cloned is there: %+v", vm)
		}
	}
	w.off(syscall.SIGTERM)
	w.on()
	w.castle("create").succeeds()
	w.hasExactlyItsVMs()
	w.hasAQuorum(w.unsealed("talosconfig"))
}

func TestALyingEndpointDoesNotOpenTheGate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "none", "0", without(engineFolder, storageFolder, gitopsFolder)...)
	w.on("webhook-lies=8s")
	w.castle("create").succeeds()
	w.heldUntilServed("networking", "metallb-webhook-service")
	w.poolAtFirstTry()
	w.kubernetes(w.unsealed("kubeconfig")).givesAddresses()
}

func TestRefusedGitCredentialsEndTheHandOverInFluxsWords(t *testing.T) {
	needs.Slow(t)
	t.Parallel()
	w := newWorld(t, "none", "0", without(networkingFolder, storageFolder)...)
	w.on("flux-no-secret")
	w.castle("create", "--gate-timeout=30s").failsWith("layer gitops failed", "GitRepository flux-system", "authentication required", resumes)
	if got := w.layerResult("engine"); got != "ok" {
		t.Errorf("the layer engine ended %q", got)
	}
	store, secrets := w.event(ends("gate", "engine", "ClusterSecretStore infisical-flux")), w.event(ends("gate", "gitops", "ExternalSecrets of Flux in flux-system"))
	if source := w.event(starts("gate", "gitops", "GitRepository flux-system")); store.Time.IsZero() || secrets.Time.IsZero() || store.Time.After(secrets.Time) || secrets.Time.After(source.Time) {
		t.Errorf("the store was ready at %s, Flux's secrets were there at %s, and its source was waited for from %s", store.Time, secrets.Time, source.Time)
	}
	w.off(syscall.SIGTERM)
	w.on()
	w.castle("create").succeeds()
	w.kubernetes(w.unsealed("kubeconfig")).follows(w.head(), seedTag)
	w.leaksNothing()
}
