//go:build linux

package scenarios

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"tazlab.net/castle/ci/base/filelock"
	"tazlab.net/castle/ci/cluster/states"
	"tazlab.net/castle/ci/test/tell"
)

// foreigners are VMs of somebody else: one in the cluster's range of ids and one beside either end of it.
var foreigners = change{file: "live/sandbox/world.yaml", from: "    - {id: 900, name: talos-nocloud}\n",
	to: "    - {id: 900, name: talos-nocloud}\n  foreign:\n    - {id: 520, name: mail}\n    - {id: 530, name: db}\n    - {id: 533, name: web}\n"}

// play interrupts, calls the same verb once more, and looks at what that has led to.
func (p *trial) play(t *testing.T) {
	changes := []change{foreigners}
	if p.peace && p.out[0] == waysOut[1][0] {
		changes = append(changes, justPlatform()...) // what runs on the machines is no matter to a wipe
	}
	w := newWorld(t, "none", "0", changes...)
	w.ownDisk()
	if p.way.inS3 {
		w.keepStatesInS3()
	}
	w.on()
	if p.way.inS3 {
		w.store = w.serveS3()
	}
	others := w.vms()

	var heard []*overheard
	if p.peace {
		made := w.start(w.live, nil, "create")
		heard = []*overheard{made.overhear()}
		made.wait(5 * time.Minute)
		made.succeeds()
	} else if heard = p.create(w); p.out == nil {
		return
	}

	row := p.interrupt(w, p.out...)
	next := w.start(w.live, nil, p.out...)
	key := next.overhear()
	next.wait(5 * time.Minute)
	next.succeeds()
	if key.key != "" { // a call that finds all done starts no tools
		heard = append(heard, key)
	}
	w.isGone(others)
	w.leaksNothing(heard...)
	p.row(w, row, next)
}

// create interrupts a create, and looks whether the next one goes on. It returns what that one's processes were heard to hold.
func (p *trial) create(w *world) []*overheard {
	w.t.Helper()
	row := p.interrupt(w, "create")
	pki, before := w.infisical()["TALOS_SECRETS"], w.vms()
	made := w.event(ends("layer", "platform", "")).Result == "ok"
	next := w.start(w.live, nil, "create")
	heard := []*overheard{next.overhear()}
	next.wait(5 * time.Minute)
	next.succeeds()
	if after := w.vms(); made && !slices.Equal(after, before) {
		w.t.Errorf("the machines were done: Proxmox had %+v and has %+v", before, after)
	}
	if after := w.infisical()["TALOS_SECRETS"]; after == "" || pki != "" && after != pki {
		w.t.Error("the cluster got another PKI")
	}
	w.isWhole()
	w.leaksNothing(heard...)
	p.row(w, row, next)
	return heard
}

// row prints what a table of docs/reliability.md says of an interruption that was gone on from.
func (p *trial) row(w *world, row string, next *called) {
	if !w.t.Failed() {
		tell.Observation(w.t, 0, "the next %s ended what was begun", next.verb())
		w.t.Logf("%s %.1f s |", row, next.took.Seconds())
	}
}

// isWhole fails the test unless the cluster is the one that a create makes which nothing interrupts.
func (w *world) isWhole() {
	w.t.Helper()
	w.hasExactlyItsVMs()
	kubeconfig, _ := w.keepsCredentials()
	w.kubernetes([]byte(kubeconfig)).hasNoUnfinishedRelease()
	w.isWell()
	plan := w.castle("plan").succeeds().stdout.String()
	if strings.Count(plan, "No changes.") != 6 || strings.Contains(plan, "will be") || strings.Contains(plan, "must be") {
		w.t.Errorf("the states are not equal to the world:\n%s", plan)
	}
	if w.store != nil {
		if left := w.store.locks(w); len(left) > 0 {
			w.t.Errorf("it is still locked: %v", left)
		}
	}
}

// isGone fails the test unless nothing is left of the cluster: no VM beside those of others, no resource in a state, no lock.
func (w *world) isGone(others []vm) {
	w.t.Helper()
	if left := w.vms(); !slices.Equal(left, others) {
		w.t.Errorf("without the cluster Proxmox had %+v and has %+v", others, left)
	}
	var found states.States
	if err := json.Unmarshal(w.castle("state-list", "--format=json").succeeds().stdout.Bytes(), &found); err != nil {
		w.t.Fatal(err)
	}
	for _, layer := range found.Layers {
		if len(layer.Resources) > 0 || layer.Problem != "" {
			w.t.Errorf("the state of layer %s holds %v: %s", layer.Name, layer.Resources, layer.Problem)
		}
	}
	if len(found.Layers) != 6 || len(found.Locks) > 0 {
		w.t.Errorf("of the states castle says %+v", found)
	}
	unlock, err := filelock.Try(filepath.Join(w.state(), "lock"))
	if err == nil {
		err = unlock()
	}
	if err != nil {
		w.t.Errorf("the cluster is still locked: %v", err)
	}
	if w.store != nil {
		if left := w.store.locks(w); len(left) > 0 {
			w.t.Errorf("it is still locked: %v", left)
		}
	}
}

// hasNoUnfinishedRelease fails the test where a record of Helm says that something is still going on.
func (k kube) hasNoUnfinishedRelease() {
	k.world.t.Helper()
	list, err := k.typed.CoreV1().Secrets("").List(k.world.t.Context(), metav1.ListOptions{LabelSelector: "owner=helm"})
	if err != nil {
		k.world.t.Fatal(err)
	}
	for _, record := range list.Items {
		if record.Labels["status"] != "deployed" && record.Labels["status"] != "superseded" {
			k.world.t.Errorf("Helm's record %s/%s says %s", record.Namespace, record.Name, record.Labels["status"])
		}
	}
}
