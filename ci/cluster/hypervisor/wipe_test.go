package hypervisor

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/sandbox/proxmox"
)

// guest is a VM that runs, with tags.
func guest(id int, name string, tags ...string) proxmox.Guest {
	return proxmox.Guest{VM: proxmox.VM{ID: id, Name: name, Tags: tags}, Running: true}
}

// TestAWipeTakesWhatHasTheClustersIDAndItsTag, and leaves all else, which it names.
func TestAWipeTakesWhatHasTheClustersIDAndItsTag(t *testing.T) {
	template := proxmox.Guest{VM: proxmox.VM{ID: 432, Name: "golden", Tags: []string{"castle-blue"}}, Template: true}
	h := hostWith(t, proxmox.Options{}, guest(420, "before", "castle-blue"), guest(421, "blue-cp-1", "blue", "castle", "controlplane"), guest(422, "renamed", "castle-blue"),
		guest(425, "db", "blue"), guest(426, "green-cp-1", "castle-green"), guest(427, "blue-2-cp-1", "castle-blue-2"), template, guest(433, "behind", "castle-blue"), guest(500, "other"))
	told := func(untagged ...int) string {
		remove, stay, err := h.Condemned(t.Context(), untagged)
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, vm := range remove {
			lines = append(lines, fmt.Sprintf("%d goes", vm.ID))
		}
		for _, vm := range stay {
			lines = append(lines, fmt.Sprintf("%d stays: %s", vm.ID, vm.Why))
		}
		return strings.Join(lines, "\n")
	}
	if got, want := told(), `421 goes
422 goes
420 stays: its id is outside 421 to 432
425 stays: it has not the tag castle-blue
426 stays: it has not the tag castle-blue
427 stays: it has not the tag castle-blue
432 stays: it is a template
433 stays: its id is outside 421 to 432`; got != want {
		t.Errorf("got\n%s", got)
	}
	if got := told(425); !strings.HasPrefix(got, "421 goes\n422 goes\n425 goes\n420 stays") {
		t.Errorf("with 425 named:\n%s", got)
	}
	if got := told(433, 420); got != told() {
		t.Errorf("with ids outside of the range named:\n%s", got)
	}
	_, _, err := h.Condemned(t.Context(), []int{430, 432})
	if err == nil || strings.Count(err.Error(), "\n") != 1 || !strings.Contains(err.Error(), "430: there is no such VM") || !strings.Contains(err.Error(), "432: golden is a template") {
		t.Errorf("got %v", err)
	}
}

func TestAVMIsRemovedAsItWasListed(t *testing.T) {
	h := hostWith(t, proxmox.Options{}, guest(421, "blue-cp-1", "castle-blue"), guest(422, "blue-cp-2", "castle-blue"))
	ids := func() (ids []int) {
		vms, err := h.VMs(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, vm := range vms {
			ids = append(ids, vm.ID)
		}
		return ids
	}
	listed, _, err := h.Condemned(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, other := range []VM{{ID: 421, Name: "db", Ours: true}, {ID: 421, Name: "blue-cp-1"}} {
		if _, err := h.Remove(t.Context(), other, nil, func(string) {}); err == nil || !strings.Contains(err.Error(), "it is left alone") {
			t.Errorf("%+v was listed: %v", other, err)
		}
	}
	if got := ids(); !slices.Equal(got, []int{421, 422}) {
		t.Fatalf("there are %v", got)
	}
	if _, err := h.Remove(t.Context(), listed[0], nil, func(string) {}); err == nil || !strings.Contains(err.Error(), "its volume local-lvm:vm-421-disk-0 was not listed") {
		t.Errorf("with a disk that was not listed: %v", err)
	}
	var told []string
	for _, did := range []bool{true, false} { // the second call finds nothing to do
		if got, err := h.Remove(t.Context(), listed[0], []string{"local-lvm:vm-421-disk-0"}, func(text string) { told = append(told, text) }); err != nil || got != did {
			t.Fatalf("did something: %t, %v", got, err)
		}
	}
	if want := []string{"it is stopped", "it is removed"}; !slices.Equal(told, want) || !slices.Equal(ids(), []int{422}) {
		t.Errorf("told %q, there are %v", told, ids())
	}
}

// Somebody gave another VM a disk whose name has the id of one of the cluster's.
func TestADiskThatNoConfigurationOfTheClustersNamesStays(t *testing.T) {
	own := guest(421, "blue-cp-1", "castle-blue")
	own.Config = map[string]string{"ide2": "local-lvm:cloudinit"}
	other := guest(500, "db")
	other.Disks = []proxmox.Disk{{Interface: "scsi0", Volume: "local-lvm:vm-421-disk-7", Bytes: 1 << 30}}
	h := hostWith(t, proxmox.Options{}, own, other)
	listed, _, err := h.Condemned(t.Context(), nil)
	if err != nil || len(listed) != 1 {
		t.Fatal(listed, err)
	}
	volumes, err := h.Volumes(t.Context(), listed[0])
	if want := []string{"local-lvm:vm-421-cloudinit", "local-lvm:vm-421-disk-0"}; err != nil || !slices.Equal(volumes, want) {
		t.Errorf("with it go %v, %v", volumes, err)
	}
	kept, err := h.Unreferenced(t.Context(), listed)
	if err != nil || len(kept) != 1 || kept[0].Volume != "local-lvm:vm-421-disk-7" {
		t.Errorf("what stays is %+v, %v", kept, err)
	}
	if err := h.OthersDisks(t.Context(), []int{421}); err == nil || !strings.Contains(err.Error(), "OpenTofu would remove local-lvm:vm-421-disk-7 with VM 421 blue-cp-1") {
		t.Errorf("an old state: %v", err)
	}
	if err := h.OthersDisks(t.Context(), []int{422, 500}); err != nil {
		t.Errorf("without such a disk: %v", err)
	}
	if _, err := h.Remove(t.Context(), listed[0], volumes, func(string) {}); err != nil {
		t.Fatal(err)
	}
	if left, err := h.leftovers(t.Context(), listed); err != nil || len(left) != 1 || left[0].Volume != "local-lvm:vm-421-disk-7" {
		t.Errorf("there are %+v, %v", left, err)
	}
	if left, unseen := h.NotRemoved(t.Context(), listed, kept); len(left) != 0 || unseen != "" {
		t.Errorf("what was to stay is told as left: %v %s", left, unseen)
	}
}
