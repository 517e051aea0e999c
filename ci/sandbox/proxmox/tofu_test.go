package proxmox

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	clusterconfig "tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/hypervisor"
	"tazlab.net/castle/ci/sandbox/profile"
	"tazlab.net/castle/ci/test/needs"
)

// tofu runs OpenTofu on a folder of configuration against a world.
type tofu struct {
	program, folder string
	env             []string
}

func newTofu(t *testing.T, w *world, configuration string) tofu {
	t.Helper()
	programs := needs.Programs(t, "provider-proxmox", "tofu")
	run := tofu{program: programs["tofu"], folder: t.TempDir()}
	if err := os.CopyFS(run.folder, os.DirFS(configuration)); err != nil {
		t.Fatal(err)
	}
	settings := filepath.Join(run.folder, "settings.tfrc")
	text := fmt.Sprintf("provider_installation {\n  dev_overrides {\n    \"bpg/proxmox\" = %q\n  }\n}\n", filepath.Dir(programs["terraform-provider-proxmox"]))
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	authority := filepath.Join(run.folder, "authority.pem")
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: w.http.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	run.env = append(os.Environ(), "TF_CLI_CONFIG_FILE="+settings, "CHECKPOINT_DISABLE=1", "TF_IN_AUTOMATION=1",
		"PROXMOX_VE_ENDPOINT="+w.http.URL, "PROXMOX_VE_API_TOKEN="+tokenID+"="+tokenSecret, "SSL_CERT_FILE="+authority)
	return run
}

// run returns the output and whether the exit status was the given one.
func (r tofu) run(t *testing.T, status int, arguments ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	begin := time.Now()
	command := exec.CommandContext(ctx, r.program, append(arguments, "-no-color")...)
	command.Dir, command.Env = r.folder, r.env
	var output bytes.Buffer
	command.Stdout, command.Stderr = &output, &output
	err := command.Run()
	if command.ProcessState == nil || command.ProcessState.ExitCode() != status {
		t.Fatalf("tofu %s: %v, want exit status %d\n%s", strings.Join(arguments, " "), err, status, output.String())
	}
	t.Logf("tofu %s took %v", strings.Join(arguments, " "), time.Since(begin).Round(time.Millisecond))
	return output.String()
}

// Exit statuses of "plan -detailed-exitcode".
const (
	noChanges = 0
	changes   = 2
)

func (r tofu) plan(t *testing.T, status int, more ...string) string {
	t.Helper()
	return r.run(t, status, append([]string{"plan", "-input=false", "-detailed-exitcode"}, more...)...)
}

func TestTheRealProviderMakesChangesAndRemovesVMs(t *testing.T) {
	w := newWorld(t, slow(profile.Delays{VMClone: 200 * time.Millisecond, VMConfig: 20 * time.Millisecond, VMStart: 20 * time.Millisecond}, nil))
	tofu := newTofu(t, w, filepath.Join("testdata", "cluster"))
	tofu.run(t, 0, "apply", "-input=false", "-auto-approve")
	for id, address := range map[int]string{521: "192.168.77.211", 525: "192.168.77.215"} {
		vm, on := w.machines.vm(id)
		if !on || vm.Address != netip.PrefixFrom(netip.MustParseAddr(address), 24) || vm.MemoryMiB != 8192 || vm.Cores != 4 ||
			len(vm.DNS) != 2 || strings.Join(vm.Tags, " ") != "castle sandbox" || len(vm.Disks) != 1 || vm.Disks[0].Bytes != 40*gib {
			t.Errorf("VM %d is on: %v, %+v", id, on, vm)
		}
	}
	config := w.vm(t, 521).VirtualMachineConfig
	if !bool(config.OnBoot) || !strings.Contains(config.Nets["net0"], "bridge=vmbr0") || !strings.Contains(config.IDEs["ide2"], "vm-521-cloudinit") {
		t.Errorf("the configuration of VM 521 is %+v", config)
	}
	if odd, _ := w.machines.vm(530); len(odd.Disks) != 2 || odd.Disks[0].Bytes != 20*gib || odd.Disks[1].Bytes != 100*gib {
		t.Errorf("VM 530 has the disks %+v", odd.Disks)
	}
	if output := tofu.run(t, 0, "output", "odd_addresses"); !strings.Contains(output, "192.168.77.230") {
		t.Errorf("the agent's addresses did not come through: %s", output)
	}
	tofu.plan(t, noChanges)

	more := []string{"-var", "memory=16384", "-var", "disk=50"}
	if output := tofu.plan(t, changes, more...); !strings.Contains(output, "0 to add, 5 to change, 0 to destroy") {
		t.Errorf("the changes are not in place: %s", output)
	}
	tofu.run(t, 0, append([]string{"apply", "-input=false", "-auto-approve"}, more...)...)
	if vm, _ := w.machines.vm(523); vm.MemoryMiB != 16384 || vm.Disks[0].Bytes != 50*gib {
		t.Errorf("after the change VM 523 is %+v", vm)
	}
	tofu.plan(t, noChanges, more...)

	tofu.run(t, 0, "state", "rm", "proxmox_virtual_environment_vm.node[\"cp-2\"]")
	tofu.run(t, 0, append([]string{"import", "-input=false"}, append(more, "proxmox_virtual_environment_vm.node[\"cp-2\"]", "pve/522")...)...)
	// An import knows no timeouts; the next apply writes them into the state and nothing into the VM.
	if output := tofu.plan(t, changes, more...); !strings.Contains(output, "0 to add, 1 to change, 0 to destroy") {
		t.Errorf("the plan after an import: %s", output)
	}
	tofu.run(t, 0, append([]string{"apply", "-input=false", "-auto-approve"}, more...)...)
	tofu.plan(t, noChanges, more...)
	tofu.run(t, 0, append([]string{"destroy", "-input=false", "-auto-approve"}, more...)...)
	node, err := w.client.Node(t.Context(), "pve")
	if err != nil {
		t.Fatal(err)
	}
	if left, err := node.VirtualMachines(t.Context()); err != nil || len(left) != 1 || left[0].VMID != 900 {
		t.Errorf("after the removal there are %+v, %v", left, err)
	}
}

func TestTheRealProviderShowsWhyItFailed(t *testing.T) {
	w := newWorld(t, slow(profile.Delays{}, profile.Faults{profile.CloneFails: "523"}))
	if err := w.Seed(Guest{VM: VM{ID: 524, Name: "foreign"}}); err != nil {
		t.Fatal(err)
	}
	tofu := newTofu(t, w, filepath.Join("testdata", "cluster"))
	output := tofu.run(t, 1, "apply", "-input=false", "-auto-approve", "-target=proxmox_virtual_environment_vm.node")
	for _, want := range []string{"VM 524 already exists on node 'pve'", "free space in thin pool pve/data reached"} {
		if !strings.Contains(strings.Join(strings.Fields(strings.ReplaceAll(output, "│", "")), " "), want) {
			t.Errorf("the output has no %q:\n%s", want, output)
		}
	}
	if w.vm(t, 524).Name != "foreign" {
		t.Error("the foreign VM was changed")
	}
}

// The layer's module is the provider's user that counts. The host's moods and a storage's lock meet the clones, which the module retries, and the token has the
// documented role without what create is said to do without.
func TestTheLayersModuleReachesAStateWithoutChanges(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		slow(profile.Delays{VMClone: 100 * time.Millisecond}, profile.Faults{profile.ProxmoxMoods: "2", profile.StorageLock: "1", profile.PrivilegeMissing: "Datastore.Audit,Sys.Audit,VM.Config.HWType"})(o)
		o.Privileges = map[string][]string{"/": hypervisor.Privileges()}
	})
	tofu := ofModule(t, w, func(*clusterconfig.Cluster) {})
	tofu.run(t, 0, "apply", "-input=false", "-auto-approve")
	if vm, on := w.machines.vm(525); !on || vm.MemoryMiB != 16384 || vm.Disks[0].Bytes != 100*gib {
		t.Errorf("VM 525 is on: %v, %+v", on, vm)
	}
	tofu.plan(t, noChanges)
	tofu.run(t, 0, "destroy", "-input=false", "-auto-approve")
}

// Machines stand on three hosts: at their template, at another one's, and away from theirs, which shared storage alone allows.
func TestTheLayersModuleClonesOnEachHostAndAcrossSharedStorage(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		slow(profile.Delays{VMClone: 100 * time.Millisecond}, nil)(o)
		o.Privileges = map[string][]string{"/": hypervisor.Privileges()}
		o.Nodes = []Node{{Name: "pve"}, {Name: "pve2"}, {Name: "pve3"}}
		o.Storages = []Storage{{ID: "ceph", Type: "rbd", Content: "images", Bytes: 1 << 40, Shared: true}}
	})
	if err := w.Seed(Guest{Template: true, VM: VM{ID: 901, Name: "talos", Node: "pve2", Disks: []Disk{{Interface: "scsi0", Bytes: 10 * gib}}}}); err != nil {
		t.Fatal(err)
	}
	tofu := ofModule(t, w, func(c *clusterconfig.Cluster) {
		c.Proxmox.Storage, c.Proxmox.VLAN = "ceph", 42
		c.Proxmox.TemplateHost, c.Proxmox.Templates = "pve", map[string]int{"pve2": 901}
		c.Nodes[3].Host, c.Nodes[4].Host = "pve2", "pve3"
		c.Nodes[4].Disks = append(c.Nodes[4].Disks, clusterconfig.Disk{Size: 30, Volume: "data"})
	})
	tofu.run(t, 0, "apply", "-input=false", "-auto-approve")
	for id, host := range map[int]string{521: "pve", 524: "pve2", 525: "pve3"} {
		vm, on := w.machines.vm(id)
		if !on || vm.Node != host || len(vm.Disks) != 1 && id != 525 {
			t.Errorf("VM %d is on: %v, %+v", id, on, vm)
		}
	}
	if vm, _ := w.machines.vm(525); len(vm.Disks) != 2 || vm.Disks[1].Bytes != 30*gib {
		t.Errorf("VM 525 has the disks %+v", vm.Disks)
	}
	if card := w.vm(t, 521).VirtualMachineConfig.Nets["net0"]; !strings.Contains(card, "tag=42") {
		t.Errorf("VM 521 has the network card %s", card)
	}
	tofu.plan(t, noChanges)
	tofu.run(t, 0, "destroy", "-input=false", "-auto-approve")
}

// ofModule is the layer's module for the sandbox's cluster, changed.
func ofModule(t *testing.T, w *world, change func(*clusterconfig.Cluster)) tofu {
	t.Helper()
	layers := filepath.Join("..", "..", "..", "terragrunt")
	tofu := newTofu(t, w, filepath.Join(layers, "modules", "platform-proxmox"))
	cluster, err := clusterconfig.Load(filepath.Join(layers, "live", "sandbox"))
	if err != nil {
		t.Fatal(err)
	}
	change(cluster)
	variables, err := json.Marshal(map[string]any{"cluster": cluster})
	if err != nil {
		t.Fatal(err)
	}
	// The layers' root adds both where it runs the module.
	const providers = "terraform {\n  required_providers {\n    proxmox = {\n      source = \"bpg/proxmox\"\n    }\n  }\n}\n"
	for name, text := range map[string]string{"providers.tf": providers, "cluster.auto.tfvars.json": string(variables)} {
		if err := os.WriteFile(filepath.Join(tofu.folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return tofu
}
