package hypervisor

import (
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/sandbox/proxmox"
)

const token = "castle@pve!test=5f8a9c0e-0000-4000-8000-0123456789ab"

// host is blue's Proxmox with these VMs, simulated.
func host(t *testing.T, vms ...proxmox.VM) *Hypervisor {
	t.Helper()
	return hostSeenBy(t, nil, vms...)
}

func hostSeenBy(t *testing.T, held map[string][]string, vms ...proxmox.VM) *Hypervisor {
	t.Helper()
	var guests []proxmox.Guest
	for _, vm := range vms {
		guests = append(guests, proxmox.Guest{VM: vm})
	}
	return hostWith(t, proxmox.Options{Privileges: held}, guests...)
}

func hostWith(t *testing.T, options proxmox.Options, guests ...proxmox.Guest) *Hypervisor {
	t.Helper()
	options.File, options.Tokens = filepath.Join(t.TempDir(), "proxmox.json"), []string{token}
	simulator, err := proxmox.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(simulator.Close)
	for _, guest := range guests {
		guest.Cores, guest.MemoryMiB = 1, 512
		if guest.Disks == nil {
			guest.Disks = []proxmox.Disk{{Interface: "scsi0", Bytes: 1 << 30}}
		}
		if err := simulator.Seed(guest); err != nil {
			t.Fatal(err)
		}
	}
	server := httptest.NewUnstartedServer(simulator)
	server.Config = simulator.HTTP()
	server.StartTLS()
	t.Cleanup(server.Close)
	cluster, err := config.Load("../../../terragrunt/live/blue")
	if err != nil {
		t.Fatal(err)
	}
	cluster.Proxmox.URL, cluster.Proxmox.Fingerprint = server.URL, fingerprint(server.Certificate())
	h := Open(cluster, nil, token)
	t.Cleanup(h.Close)
	return h
}

func TestAVMIsTheClustersByIDNameAndTagTogether(t *testing.T) {
	ours := []string{"castle", "castle-blue", "controlplane"}
	cases := map[string]struct {
		vm    proxmox.VM
		begun []int
		known map[string]int
		want  string // of the error, "" where it is ours
	}{
		"ours":                               {vm: proxmox.VM{ID: 421, Name: "blue-cp-1", Tags: ours}},
		"as an earlier castle has tagged it": {vm: proxmox.VM{ID: 421, Name: "blue-cp-1", Tags: []string{"castle", "blue", "controlplane"}}},
		"the bare name":                      {vm: proxmox.VM{ID: 421, Name: "blue-cp-1", Tags: []string{"blue", "castle"}}, want: "without the cluster's tag"},
		"at no node's id":                    {vm: proxmox.VM{ID: 431, Name: "db"}},
		"another name and no tag":            {vm: proxmox.VM{ID: 421, Name: "db"}, want: `is "db" without the cluster's tag, not blue-cp-1 of cluster blue`},
		"another name":                       {vm: proxmox.VM{ID: 421, Name: "db", Tags: ours}, want: `is "db", not blue-cp-1`},
		"our name, another cluster's tag":    {vm: proxmox.VM{ID: 421, Name: "blue-cp-1", Tags: []string{"castle-green"}}, want: "without the cluster's tag"},
		"begun, the tag yet to come":         {vm: proxmox.VM{ID: 421, Name: "blue-cp-1"}, begun: []int{421, 422}},
		"another one in the place of that":   {vm: proxmox.VM{ID: 421, Name: "db"}, begun: []int{421}, want: `is "db"`},
		"renamed in the description":         {vm: proxmox.VM{ID: 421, Name: "blue-old", Tags: ours}, known: map[string]int{"blue-old": 421}},
		"known to the state alone":           {vm: proxmox.VM{ID: 500, Name: "db"}, known: map[string]int{"blue-worker-9": 500}, want: "not blue-worker-9"},
	}
	for name, c := range cases {
		err := host(t, c.vm).CheckOwned(t.Context(), c.begun, c.known)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A create that was killed twice: the second one must not forget what the first had begun.
func TestABegunVMIsUnfinishedUntilItIsConfigured(t *testing.T) {
	h := host(t, proxmox.VM{ID: 421, Name: "blue-cp-1"}, proxmox.VM{ID: 422, Name: "blue-cp-2", Tags: []string{"castle-blue"}})
	ids, err := h.Unfinished(t.Context(), []int{421, 423, 424, 425})
	if err != nil || !slices.Equal(ids, []int{421, 423, 424, 425}) {
		t.Errorf("unfinished are %v, %v", ids, err)
	}
	if got, want := h.Begun(ids), []string{"blue-cp-1", "blue-cp-3", "blue-worker-1", "blue-worker-2"}; !slices.Equal(got, want) {
		t.Errorf("begun are %v", got)
	}
	if err := h.CheckOwned(t.Context(), ids, nil); err != nil {
		t.Error(err)
	}
}

// What a token may not see is left out of every list, as if it were not there.
func TestATokenThatSeesNothingIsNoProofThatNothingIsThere(t *testing.T) {
	blind := map[string][]string{"/": {"Sys.Audit"}}
	ours := proxmox.VM{ID: 421, Name: "blue-cp-1", Tags: []string{"castle-blue"}}
	template := proxmox.VM{ID: 900, Name: "talos"}
	if vms, err := hostSeenBy(t, blind, ours, template).VMs(t.Context()); err == nil || !strings.Contains(err.Error(), "give it VM.Audit on /vms") {
		t.Errorf("a blind token got %+v, %v", vms, err)
	}
	for name, vms := range map[string][]proxmox.VM{"with the template": {ours, template}, "without": {ours}} {
		if vms, err := host(t, vms...).VMs(t.Context()); err != nil || len(vms) != 1 {
			t.Errorf("%s: %+v, %v", name, vms, err)
		}
	}
}

// What a create would end with is told before it: a renamed node's VM, and one that was begun, are no strangers.
func TestAStrangerIsAVMWithoutTheTagThatNobodyHasBegun(t *testing.T) {
	h := host(t, proxmox.VM{ID: 421, Name: "blue-old", Tags: []string{"castle-blue"}}, proxmox.VM{ID: 422, Name: "blue-cp-2"}, proxmox.VM{ID: 423, Name: "db"},
		proxmox.VM{ID: 424, Name: "blue-worker-1", Tags: []string{"castle-green"}}, proxmox.VM{ID: 430, Name: "mail"},
		proxmox.VM{ID: 425, Name: "under-way"})
	vms, err := h.All(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := h.Strangers(vms, []int{422, 425})
	if len(found) != 2 || !strings.Contains(found[0].Seen, `VM 423 on pve is "db" without the cluster's tag, not blue-cp-3`) || found[1].ID != 424 {
		t.Errorf("got %+v", found)
	}
}
