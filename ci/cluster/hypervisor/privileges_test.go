package hypervisor

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/sandbox/proxmox"
)

func TestAPrivilegeThatIsMissingIsNamedWithItsPath(t *testing.T) {
	on := func(path string, less ...string) map[string][]string {
		whole := Privileges()
		return map[string][]string{"/": whole, path: slices.DeleteFunc(slices.Clone(whole), func(p string) bool { return slices.Contains(less, p) })}
	}
	for name, c := range map[string]struct {
		held map[string][]string
		want []string
		all  bool
	}{
		"nothing is missing": {held: map[string][]string{"/": Privileges()}},
		"on the template":    {held: on("/vms/900", "VM.Clone", "VM.PowerMgmt"), want: []string{"VM.Clone on /vms/900 (the template)"}},
		"on one node's VM":   {held: on("/vms/422", "VM.Clone", "VM.PowerMgmt"), want: []string{"VM.PowerMgmt on /vms/422 (the nodes' VMs)"}},
		"on the storage":     {held: on("/storage/local-lvm", "Datastore.AllocateSpace"), want: []string{"Datastore.AllocateSpace on /storage/local-lvm (the VMs' disks)"}},
		"on another storage": {held: on("/storage/local", "Datastore.AllocateSpace")},
		"on the bridge":      {held: on("/sdn", "SDN.Use"), want: []string{"SDN.Use on /sdn/zones/localnetwork/vmbr0 (the VMs' bridge)"}},
		"on the host":        {held: on("/nodes/proxmox", "Sys.Audit"), want: []string{"Sys.Audit on /nodes/proxmox (hosts and tasks)"}},
		"on all VMs": {held: on("/vms", "VM.Config.Disk"), want: []string{
			"VM.Config.Disk on /vms/421, /vms/422, /vms/423, /vms/424, /vms/425 (the nodes' VMs)"}},
		"everything": {held: map[string][]string{"/": {"VM.Backup"}}, all: true},
	} {
		lacks, all, err := hostWith(t, proxmox.Options{Privileges: c.held}).Lacking(t.Context())
		var got []string
		for _, lack := range lacks {
			got = append(got, lack.String())
		}
		if err != nil || all != c.all || !c.all && !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, %v, %v", name, got, all, err)
		}
	}
}

func TestTheBridgesVLANIsAPathOfItsOwn(t *testing.T) {
	whole := Privileges()
	without := slices.DeleteFunc(slices.Clone(whole), func(p string) bool { return p == "SDN.Use" })
	for tag, want := range map[int]string{0: "", 41: "", 42: "SDN.Use on /sdn/zones/localnetwork/vmbr0/42 (the VMs' bridge)"} {
		h := hostWith(t, proxmox.Options{Privileges: map[string][]string{"/": whole, "/sdn/zones/localnetwork/vmbr0/42": without}})
		h.cluster.Proxmox.VLAN = tag
		lacks, _, err := h.Lacking(t.Context())
		got := ""
		for _, lack := range lacks {
			got += lack.String()
		}
		if err != nil || got != want {
			t.Errorf("tag %d: %q, %v", tag, got, err)
		}
	}
}

func TestATokenThatMustNotRemoveVMsIsToldBeforeAnyGoes(t *testing.T) {
	without := func(privilege string) *Hypervisor {
		held := slices.DeleteFunc(Privileges(), func(p string) bool { return p == privilege })
		return hostWith(t, proxmox.Options{Privileges: map[string][]string{"/": held}})
	}
	if err := without("VM.Clone").MayRemove(t.Context()); err != nil {
		t.Errorf("without VM.Clone: %v", err)
	}
	want := "since it lacks VM.PowerMgmt on /vms/421, /vms/422, /vms/423, /vms/424, /vms/425 (the nodes' VMs)"
	if err := without("VM.PowerMgmt").MayRemove(t.Context()); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("without VM.PowerMgmt: %v", err)
	}
}

// The role that docs/create-a-cluster.md has people make is what castle asks for, neither more nor less.
func TestTheDocumentedRoleHasThePrivileges(t *testing.T) {
	text, err := os.ReadFile("../../../docs/create-a-cluster.md")
	if err != nil {
		t.Fatal(err)
	}
	match := regexp.MustCompile(`(?s)pveum role add Castle --privs "([^"]+)"`).FindSubmatch(text)
	if match == nil {
		t.Fatal("docs/create-a-cluster.md makes no role Castle")
	}
	if role := strings.Fields(strings.ReplaceAll(string(match[1]), `\`, "")); !slices.Equal(role, Privileges()) {
		t.Errorf("the role of docs/create-a-cluster.md has\n%q, castle needs\n%q", role, Privileges())
	}
}

func TestStorageAndHostsAreSeenAsProxmoxHasThem(t *testing.T) {
	h := hostWith(t, proxmox.Options{
		Nodes:    []proxmox.Node{{Name: "proxmox"}, {Name: "other", Offline: true}},
		Storages: []proxmox.Storage{{ID: "local-lvm", Type: "lvmthin", Content: "rootdir,images", Bytes: 100 << 30}, {ID: "local", Type: "dir", Content: "iso", Bytes: 1 << 30}},
	}, proxmox.Guest{VM: proxmox.VM{ID: 500, Name: "db"}})
	storages, err := h.Storages(t.Context())
	want := Storage{Host: "proxmox", Exists: true, Usable: true, Images: true, Type: "lvmthin", Free: 99 << 30}
	if err != nil || len(storages) != 1 || storages[0] != want {
		t.Errorf("the storages are %+v, %v", storages, err)
	}
	h.cluster.Proxmox.Storage = "local"
	if storages, err := h.Storages(t.Context()); err != nil || storages[0].Images || !storages[0].Exists {
		t.Errorf("a storage for images of CDs is %+v, %v", storages, err)
	}
	h.cluster.Nodes[0].Host, h.cluster.Nodes[1].Host, h.cluster.Proxmox.Bridge = "other", "gone", "vmbr9"
	hosts, known, err := h.Hosts(t.Context())
	if err != nil || !slices.Equal(hosts, []Host{{"gone", false, false}, {"other", true, false}, {"proxmox", true, true}}) || !slices.Equal(known, []string{"other", "proxmox"}) {
		t.Errorf("the hosts are %+v of %v, %v", hosts, known, err)
	}
	if bridges, err := h.Bridges(t.Context()); err != nil || len(bridges) != 1 || bridges["proxmox"] {
		t.Errorf("the bridge is on %v, %v", bridges, err)
	}
}
