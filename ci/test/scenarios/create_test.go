//go:build linux

package scenarios

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/outputs"
	"tazlab.net/castle/ci/cluster/timeline"
	"tazlab.net/castle/ci/test/tell"
)

func starts(kind, layer, name string) func(timeline.Event) bool {
	return func(e timeline.Event) bool {
		return e.Kind == kind && e.Layer == layer && e.Phase == timeline.PhaseStart && strings.HasPrefix(e.Name, name)
	}
}

// TestAClusterIsCreatedThroughFaultsKeptAndDestroyed is a cluster's whole life.
func TestAClusterIsCreatedThroughFaultsKeptAndDestroyed(t *testing.T) {
	w := newWorld(t, "homelab", "0.05")
	w.on("webhook-late=4s", "proxmox-moods", "infisical-moods", "bootstrap-noop", "vip-flaps=3s", "kubelet-restarts=6s")

	// From nothing.
	create := w.start(w.live, nil, "create")
	key := create.overhear()
	create.wait(patience)
	create.succeeds()
	for _, layer := range []string{"secrets", "platform", "engine", "networking", "storage", "gitops"} {
		if got := w.layerResult(layer); got != "ok" {
			t.Errorf("the layer %s ended %q", layer, got)
		}
	}
	w.heldUntilServed("networking", "metallb-webhook-service")
	w.heldUntilServed("engine", "external-secrets-webhook")
	w.poolAtFirstTry()
	w.heldThroughTheFlap()
	w.balancerAnswered()
	w.lackedAKubelet()
	w.cameUpWhileOthersWereMade()
	w.pulledAhead()
	w.hasExactlyItsVMs()
	talosconfig := w.unsealed("talosconfig")
	members := w.hasAQuorum(talosconfig)
	k := w.kubernetes(w.unsealed("kubeconfig"))
	k.hasNodes()
	k.givesAddresses()
	k.startedAllOnce()
	k.follows(w.head(), seedTag)
	kubeconfig, kept := w.keepsCredentials()
	identity := k.identity()

	// Again, with all addresses in use: nothing changes.
	empty := k.fillsPool()
	w.castle("create").succeeds()
	w.changedNothing()
	w.reliedOnTheAPIServersAge()
	empty()
	if again, andAgain := w.keepsCredentials(); again != kubeconfig || andAgain != kept {
		t.Error("what opens the cluster was replaced in Infisical")
	}
	if got := w.hasAQuorum(talosconfig); !slices.Equal(got, members) {
		t.Errorf("etcd's members were %v and are %v", members, got)
	}
	if got := k.identity(); got != identity {
		t.Errorf("the cluster was\n%s\nand is\n%s", identity, got)
	}
	plan := w.castle("plan").succeeds().stdout.String()
	if strings.Count(plan, "No changes.") != 6 || strings.Contains(plan, "will be") || strings.Contains(plan, "must be") {
		t.Errorf("the plan is\n%s", plan)
	}
	w.isWell()
	w.showsItsEndpoints()

	// A power cut.
	vms := w.vms()
	w.off(syscall.SIGKILL)
	w.on()
	if got := w.vms(); !slices.Equal(got, vms) {
		t.Errorf("Proxmox had %+v and has %+v", vms, got)
	}
	k.hasNodes()
	w.isWell()
	if got := w.hasAQuorum(talosconfig); !slices.Equal(got, members) {
		t.Errorf("etcd's members were %v and are %v", members, got)
	}
	if got := k.identity(); got != identity {
		t.Errorf("the cluster was\n%s\nand is\n%s", identity, got)
	}

	// A commit is rolled out as soon as its image is there.
	w.pushTag(seedTag, "blog-1111111")
	k.reconcile()
	k.lacksTheImage("blog-1111111")
	w.pushImage("blog-1111111")
	k.follows(w.head(), "blog-1111111")

	// The end, and the beginning again.
	w.castle("destroy").failsWith("confirm")
	w.castle("destroy", "--confirm=blue").failsWith("--confirm sandbox")
	w.hasExactlyItsVMs()
	destroyed := w.castle("destroy", "--confirm=sandbox").succeeds()
	if result := w.event(ends("step", "gitops", "what Flux applied")).Result; result != timeline.ResultOK {
		t.Errorf("what Flux applied was not removed by it: %q", result)
	}
	if strings.Contains(destroyed.stdout.String(), notRemoved) {
		t.Errorf("a cluster that is well was not removed layer by layer:\n%s", destroyed.stdout.String())
	}
	w.nothingIsLeft()
	again := w.start(w.copyLive("platform", justPlatform()...), nil, "create")
	again.wait(5 * time.Minute)
	again.succeeds()
	w.hasExactlyItsVMs()
	w.hasAQuorum(w.unsealed("talosconfig"))
	w.leaksNothing(key)
}

// gateSleeps is longer than a gate sleeps between two looks by far: how much sooner it opens is measured by the benchmarks,
// on a machine that does nothing else.
const gateSleeps = 5 * time.Second

// heldUntilServed fails the test unless the gate of a webhook saw its Service refuse, and opened after its first answer.
func (w *world) heldUntilServed(layer, service string) {
	w.t.Helper()
	found := regexp.MustCompile(`msg="webhook serves" namespace=\S+ service=`+service+` at=(\S+)`).FindAllStringSubmatch(w.log(), -1)
	if len(found) != 1 {
		w.t.Errorf("%s began to serve %d times", service, len(found))
		return
	}
	serves, err := time.Parse(time.RFC3339Nano, found[0][1])
	if err != nil {
		w.t.Fatal(err)
	}
	name := "webhook " + service
	began, end := w.event(starts("gate", layer, name)), w.event(ends("gate", layer, name))
	if end.Result != "ok" {
		w.t.Errorf("the gate of %s ended %q: %s", service, end.Result, end.Cause)
	}
	latency := end.Time.Sub(serves)
	tell.Observation(w.t, 0, "the gate of %s opened %s after the webhook served", service, latency.Round(time.Millisecond))
	if !began.Time.Before(serves) || latency < 0 || latency > gateSleeps {
		w.t.Errorf("the gate of %s opened %s after the webhook served, its wait saw:", service, latency)
		for _, event := range w.events() {
			if event.Kind == "gate" && event.Layer == layer {
				w.t.Log(event.Time.Sub(serves), event.Name, event.Phase, event.Cause)
			}
		}
	}
}

// lackedAKubelet fails the test unless the kubelet of a node was away while the layers were installed.
func (w *world) lackedAKubelet() {
	w.t.Helper()
	found := regexp.MustCompile(`msg="a kubelet restarts" node=(\S+) for=(\S+)`).FindStringSubmatch(w.log())
	if found == nil {
		w.t.Error("no kubelet restarted")
		return
	}
	tell.Observation(w.t, 0, "the kubelet of %s was away for %s", found[1], found[2])
}

// poolAtFirstTry fails the test unless the address pool was applied after the webhook's gate, once, without an error.
func (w *world) poolAtFirstTry() {
	w.t.Helper()
	log := w.toolLog("networking")
	if n := strings.Count(log, "kubectl_manifest.pool: Creating..."); n != 1 {
		w.t.Errorf("the pool was created %d times", n)
	}
	if n := strings.Count(log, "kubectl_manifest.pool: Creation complete"); n != 1 {
		w.t.Errorf("the pool's creation was completed %d times", n)
	}
	for _, text := range []string{"Error:", "failed calling webhook"} {
		if strings.Contains(log, text) {
			w.t.Errorf("networking had an error:\n%s", log)
		}
	}
}

// balancerAnswered fails the test unless the API was seen to answer at a load balancer's address.
func (w *world) balancerAnswered() {
	w.t.Helper()
	const gate = "an address for a LoadBalancer Service"
	end := w.event(ends(timeline.KindGate, layers.Networking, gate))
	answers := w.event(func(e timeline.Event) bool { return e.Name == gate && strings.HasSuffix(e.Cause, ", which answers") })
	if end.Result != timeline.ResultOK || answers.Cause == "" {
		w.t.Errorf("the gate of the load balancer ended with %+v", end)
	}
	tell.Observation(w.t, 0, "MetalLB: %s", answers.Cause)
}

// heldThroughTheFlap fails the test unless the virtual IP was seen to answer and then not, before its gate opened.
func (w *world) heldThroughTheFlap() {
	w.t.Helper()
	var seen []string
	for _, event := range w.events() {
		if event.Kind == "gate" && strings.HasPrefix(event.Name, "virtual IP") && event.Phase == timeline.PhaseWaiting {
			seen = append(seen, event.Cause)
		}
	}
	if i := slices.IndexFunc(seen, func(s string) bool { return strings.Contains(s, "8 of 8") }); i != len(seen)-1 {
		w.t.Errorf("the virtual IP's gate saw %q", seen)
	}
	tell.Observation(w.t, 0, "the virtual IP's gate saw %d times that it was not steady yet", max(0, len(seen)-1))
}

// reliedOnTheAPIServersAge fails the test unless the gate of a cluster that had been up for a while took a few looks for enough, and said why.
func (w *world) reliedOnTheAPIServersAge() {
	w.t.Helper()
	said := w.event(func(e timeline.Event) bool {
		return e.Kind == timeline.KindGate && strings.HasPrefix(e.Name, "virtual IP") && strings.Contains(e.Cause, "3 answers in a row, and each API server has run for ")
	})
	if said.Kind == "" {
		w.t.Error("the gate of the virtual IP waited as if the cluster were young")
	}
	tell.Observation(w.t, 0, "of a cluster that had been up: %s", said.Cause)
}

// pulledAhead fails the test unless each node pulled, beside the layers, what its pods run.
func (w *world) pulledAhead() {
	w.t.Helper()
	log := w.toolLog("images")
	for _, node := range w.cluster.Nodes {
		images := []string{"quay.io/metallb/speaker"}
		if node.Role == config.RoleWorker {
			images = append(images, "ghcr.io/external-secrets/external-secrets", "longhornio/longhorn-manager")
		}
		for _, image := range images {
			if strings.Count(log, " "+node.Name+" has "+image+":") != 1 {
				w.t.Errorf("%s did not pull %s once:\n%s", node.Name, image, log)
			}
		}
	}
}

// cameUpWhileOthersWereMade fails the test unless the machines were brought up as they were made, of which not all are at once.
func (w *world) cameUpWhileOthersWereMade() {
	w.t.Helper()
	var first, last time.Time
	for _, node := range w.cluster.Nodes {
		began := w.event(starts(timeline.KindStep, layers.Platform, node.Name)).Time
		if first.IsZero() || began.Before(first) {
			first = began
		}
		if began.After(last) {
			last = began
		}
	}
	if between := last.Sub(first); between < 300*time.Millisecond {
		w.t.Errorf("between the first machine and the last one there are %s only", between)
	}
}

// changedNothing fails the test unless the latest run left everything as it was.
func (w *world) changedNothing() {
	w.t.Helper()
	for _, layer := range layers.Of(w.cluster) {
		if got := w.layerResult(layer.Name); got != "ok" && got != "unchanged" {
			w.t.Errorf("the layer %s ended %q", layer.Name, got)
		}
		log := w.toolLog(layer.Name)
		if !strings.Contains(log, "No changes.") || !strings.Contains(log, "0 added, 0 changed, 0 destroyed") {
			w.t.Errorf("the layer %s was changed:\n%s", layer.Name, log)
		}
	}
	if _, err := os.Stat(filepath.Join(w.lastRun(), "log", "images.log")); !errors.Is(err, os.ErrNotExist) {
		w.t.Errorf("a node was asked for images: %v", err)
	}
	for _, event := range w.events() {
		if event.Kind != timeline.KindStep || event.Layer != "platform" {
			continue
		}
		if event.Name == "bootstrap" || event.Phase == timeline.PhaseEnd && event.Result != "unchanged" {
			w.t.Errorf("the machines were touched: %+v", event)
		}
	}
}

func (w *world) showsItsEndpoints() {
	w.t.Helper()
	var outputs outputs.Outputs
	if err := json.Unmarshal(w.castle("outputs", "--format=json").succeeds().stdout.Bytes(), &outputs); err != nil {
		w.t.Fatal(err)
	}
	if outputs.Kubernetes != "https://192.168.77.210:6443" || !slices.Equal(outputs.Talos, []string{"192.168.77.211", "192.168.77.212", "192.168.77.213"}) ||
		!slices.Equal(outputs.Workers, []string{"192.168.77.214", "192.168.77.215"}) {
		w.t.Errorf("the outputs are %+v", outputs)
	}
}
