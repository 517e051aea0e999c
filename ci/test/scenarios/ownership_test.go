//go:build linux

package scenarios

import (
	"context"
	"crypto/tls"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/luthermonson/go-proxmox"

	"tazlab.net/castle/ci/test/tell"
)

// TestSomebodyElsesVMAtTheIDOfANodeIsLeftAlone: the id is free no longer, and OpenTofu, which goes by ids alone, would make the
// others before it found out.
func TestSomebodyElsesVMAtTheIDOfANodeIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "none", "0", append(justPlatform(), change{file: "live/sandbox/world.yaml",
		from: "    - {id: 900, name: talos-nocloud}\n", to: "    - {id: 900, name: talos-nocloud}\n  foreign:\n    - {id: 525, name: db}\n"})...)
	w.on()
	tell.Fault(t, "somebody else's VM has the id of a node")
	before := w.vms()
	for _, command := range [][]string{{"create"}, {"destroy", "--confirm=sandbox"}} {
		w.castle(command...).failsWith(`VM 525 on pve is "db" without the cluster's tag, not sandbox-worker-2`, "nothing was changed")
		if got := w.vms(); !slices.Equal(got, before) {
			t.Errorf("%s: Proxmox had %+v and has %+v", command[0], before, got)
		}
	}
}

// TestSomebodyElsesVMInTheOneOfANodeIsLeftAlone: a node's VM was removed by hand, and its id given again. The state says that it is
// the cluster's.
func TestSomebodyElsesVMInTheOneOfANodeIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "none", "0", justPlatform()...)
	w.on()
	w.castle("create").succeeds()
	w.byHand(func(ctx context.Context, host *proxmox.Node) error {
		worker, err := host.VirtualMachine(ctx, 525)
		if err != nil {
			return err
		}
		if err := done(ctx)(worker.Stop(ctx)); err != nil {
			return err
		}
		if err := done(ctx)(worker.Delete(ctx, nil)); err != nil {
			return err
		}
		template, err := host.VirtualMachine(ctx, w.cluster.Proxmox.Template)
		if err != nil {
			return err
		}
		_, task, err := template.Clone(ctx, &proxmox.VirtualMachineCloneOptions{NewID: 525, Name: "db", Full: true})
		return done(ctx)(task, err)
	})
	tell.Fault(t, "the VM of a node was removed by hand, and somebody else's got its id")
	before := w.vms()
	if !slices.ContainsFunc(before, func(vm vm) bool { return vm.ID == 525 && vm.Name == "db" }) {
		t.Fatalf("Proxmox has %+v", before)
	}
	for _, command := range [][]string{{"create"}, {"destroy", "--confirm=sandbox"}} {
		w.castle(command...).failsWith(`VM 525 on pve is "db" without the cluster's tag`, "nothing was changed")
		if got := w.vms(); !slices.Equal(got, before) {
			t.Errorf("%s: Proxmox had %+v and has %+v", command[0], before, got)
		}
	}

	// With that name it is still not the cluster's: anybody may call a VM so.
	w.byHand(func(ctx context.Context, host *proxmox.Node) error {
		foreign, err := host.VirtualMachine(ctx, 525)
		if err != nil {
			return err
		}
		return done(ctx)(foreign.Config(ctx, proxmox.VirtualMachineOption{Name: "name", Value: "sandbox-worker-2"}))
	})
	w.castle("destroy", "--confirm=sandbox").failsWith(`VM 525 on pve is "sandbox-worker-2" without the cluster's tag`)
	if got := w.vms(); len(got) != len(before) {
		t.Errorf("Proxmox has %+v", got)
	}
}

// byHand acts on the world's Proxmox host, past castle.
func (w *world) byHand(act func(ctx context.Context, host *proxmox.Node) error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	transport := &http.Transport{DialContext: w.dial, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true}
	id, secret, _ := strings.Cut(w.seed().Proxmox.Tokens[0], "=")
	client := proxmox.NewClient(strings.TrimSuffix(w.cluster.Proxmox.URL, "/")+"/api2/json",
		proxmox.WithHTTPClient(&http.Client{Transport: transport}), proxmox.WithAPIToken(id, secret))
	host, err := client.Node(ctx, w.seed().Proxmox.Nodes[0])
	if err == nil {
		err = act(ctx, host)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// done waits for the end of a task that was started.
func done(ctx context.Context) func(task *proxmox.Task, err error) error {
	return func(task *proxmox.Task, err error) error {
		if err != nil {
			return err
		}
		return task.Wait(ctx, 50*time.Millisecond, time.Minute)
	}
}
