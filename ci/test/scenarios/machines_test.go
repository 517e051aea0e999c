//go:build linux

package scenarios

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/preflight"
	"tazlab.net/castle/ci/test/tell"
)

// rewritten replaces all that a pattern finds in a file, which has to be something.
func (w *world) rewritten(file, pattern, with string) {
	w.t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	text := regexp.MustCompile(pattern).ReplaceAllString(string(data), with)
	if text == string(data) {
		w.t.Fatalf("%s has nothing of %s", file, pattern)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		w.t.Fatal(err)
	}
}

// becomeMachines describes the sandbox's nodes as machines that are there already, and has the world begin with them. Their charts are the real
// ones then, so that there is no storage: the world has no Longhorn.
func (w *world) becomeMachines() {
	w.t.Helper()
	described, seeded := filepath.Join(w.live, config.File), filepath.Join(w.live, "world.yaml")
	w.rewritten(described, `(?m)^platform: sandbox$`, "platform: talos")
	w.rewritten(described, `(?m)^proxmox:\n(  .*\n)+vmIDs: .*\n`, "")
	w.rewritten(described, `vmID: .*\}`, "installDisk: /dev/nvme0n1}")
	w.rewritten(described, `(?m)^storage:\n(  .*\n)+`, "storage: none\n")
	machines := "machines:\n"
	for i, node := range w.cluster.Nodes {
		machines += fmt.Sprintf("  - {id: %d, address: %s}\n", i+1, node.Address)
	}
	w.rewritten(seeded, `(?m)^infisical:$`, machines+"infisical:")
	var err error
	if w.cluster, err = config.Load(w.live); err != nil {
		w.t.Fatal(err)
	}
}

// TestMachinesThatAreThereBecomeAClusterAndAreGivenBack: nobody makes them, and when the cluster goes they wait for another configuration.
func TestMachinesThatAreThereBecomeAClusterAndAreGivenBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "homelab", "0.02")
	w.on() // makes the Git server's authority
	w.off(syscall.SIGTERM)
	w.leaveInfisical()
	w.becomeMachines()
	w.on()
	tell.Fault(t, "there is no Proxmox")
	w.castle("secrets-init", "--out="+w.live).succeeds()

	// What the cluster is to stand on.
	rows, _ := w.doctor()
	for name := range rows {
		if strings.HasPrefix(name, "Proxmox ") {
			t.Errorf("there is a row %s", name)
		}
	}
	if row := w.rows("network machines"); len(row) != 1 || row[0].Verdict != preflight.OK || !strings.Contains(row[0].Seen, "5 machines in maintenance mode") {
		t.Errorf("the machines are %+v", row)
	}
	w.castle("create").failsWith("state.backend: local")
	w.flags = []string{"--local-states"}
	w.castle("nuclear-wipe").failsWith("whose machines castle did not make", "nothing was changed", "destroy resets each")
	w.castle("create", "--allow-replace=sandbox-worker-2").failsWith("--allow-replace is for machines that castle makes", "remove-node")

	create := w.start(w.live, nil, "create")
	key := create.overhear()
	create.wait(patience)
	create.succeeds()
	for _, layer := range []string{"secrets", "platform", "engine", "networking", "gitops"} {
		if got := w.layerResult(layer); got != "ok" {
			t.Errorf("the layer %s ended %q", layer, got)
		}
	}
	members := w.hasAQuorum(w.unsealed("talosconfig"))
	k := w.kubernetes(w.unsealed("kubeconfig"))
	k.hasNodes()
	k.givesAddresses()
	k.follows(w.head(), seedTag)
	w.machinesAre("configured")
	if plan := w.castle("plan").succeeds().stdout.String(); strings.Count(plan, "No changes.") != 5 {
		t.Errorf("the plan is\n%s", plan)
	}

	// A power cut, and create again: nothing changes.
	w.off(syscall.SIGKILL)
	w.on()
	k.hasNodes()
	w.castle("create").succeeds()
	if got := w.hasAQuorum(w.unsealed("talosconfig")); !slices.Equal(got, members) {
		t.Errorf("etcd's members were %v and are %v", members, got)
	}

	// A node leaves, and comes again.
	all := w.live
	line := regexp.MustCompile(`(?m)^  - \{name: sandbox-worker-2, .*\n`)
	data, err := os.ReadFile(filepath.Join(all, config.File))
	if err != nil {
		t.Fatal(err)
	}
	w.rewritten(filepath.Join(all, config.File), line.String(), "")
	w.castle("create").failsWith("cluster.yaml does not list sandbox-worker-2 any more", "remove-node --cluster sandbox --node sandbox-worker-2", "nothing was changed")
	w.castle("remove-node", "--node=sandbox-worker-2", "--confirm=sandbox-worker-2").succeeds()
	if w.cluster, err = config.Load(w.live); err != nil {
		t.Fatal(err)
	}
	k.hasNodes()
	if err := os.WriteFile(filepath.Join(all, config.File), data, 0o644); err != nil {
		t.Fatal(err)
	}
	if w.cluster, err = config.Load(w.live); err != nil {
		t.Fatal(err)
	}
	if status := w.status().Nodes[4]; status.Talos != "maintenance" {
		t.Errorf("the machine that left is %+v", status)
	}
	w.castle("create").succeeds()
	k.hasNodes()

	// The machines stay. One that nobody finds is left and named, and the same call goes on when it is no more described.
	w.rewritten(filepath.Join(all, config.File), `(?m)^talos:$`, "  - {name: sandbox-worker-3, role: worker, address: 192.168.77.216, installDisk: /dev/sda}\ntalos:")
	if row := w.rows("network machines"); len(row) != 1 || row[0].Verdict != preflight.Failed || !strings.Contains(row[0].Seen, "nobody answers at 192.168.77.216, the address of sandbox-worker-3") {
		t.Errorf("the machines are %+v", row)
	}
	w.castle("destroy", "--confirm=sandbox").failsWith("sandbox-worker-3 (192.168.77.216) was left as it is, with the cluster's keys and data if it has any",
		"to go on where it stopped: dagger call --state local destroy --cluster sandbox")
	if err := os.WriteFile(filepath.Join(all, config.File), data, 0o644); err != nil {
		t.Fatal(err)
	}
	w.castle("destroy", "--confirm=sandbox").succeeds()
	w.machinesAre("maintenance")

	// And again, on the same machines.
	w.castle("create").succeeds()
	w.machinesAre("configured")
	w.kubernetes(w.unsealed("kubeconfig")).hasNodes()
	if again := w.hasAQuorum(w.unsealed("talosconfig")); slices.Equal(again, members) {
		t.Errorf("etcd's members are %v still", again)
	}
	destroyed := w.castle("destroy", "--confirm=sandbox").succeeds()
	if said := destroyed.stdout.String(); !strings.Contains(said, "looked up: the states of all 6 layers are empty, and of 5 machines 5 in maintenance mode") || strings.Contains(said, notRemoved) {
		t.Errorf("destroy says\n%s", said)
	}
	w.machinesAre("maintenance")
	for _, layer := range w.status().Layers {
		if layer.Resources != 0 || layer.Problem != "" {
			t.Errorf("the state of layer %s holds %d resources: %s", layer.Layer, layer.Resources, layer.Problem)
		}
	}
	w.leaksNothing(key)
}

// rows are those of doctor that have that name.
func (w *world) rows(name string) []preflight.Row {
	w.t.Helper()
	rows, _ := w.doctor()
	return rows[name]
}

// machinesAre fails the test where status shows a machine in another state, or a VM.
func (w *world) machinesAre(state string) {
	w.t.Helper()
	for _, node := range w.status().Nodes {
		if node.VM != "-" || !strings.HasPrefix(node.Talos, state) {
			w.t.Errorf("%+v is not %s", node, state)
		}
	}
}
