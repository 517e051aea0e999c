package hypervisor

import (
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/sandbox/profile"
	"tazlab.net/castle/ci/sandbox/proxmox"
)

func TestDisksThatStayBehindAreNamedWithTheirCureAndNobodyElsesAre(t *testing.T) {
	busy := proxmox.Options{Profile: profile.Profile{Faults: profile.Faults{profile.DiskStays: "421"}}}
	h := hostWith(t, busy, guest(421, "blue-cp-1", "castle-blue"), guest(422, "blue-cp-2", "castle-blue"), guest(425, "db"), guest(426, "begun"))
	mine, err := h.Mine(t.Context(), []int{426})
	if err != nil {
		t.Fatal(err)
	}
	var ids []int
	for _, vm := range mine {
		ids = append(ids, vm.ID)
	}
	if !slices.Equal(ids, []int{421, 422, 426}) {
		t.Fatalf("the cluster's own are %v", ids)
	}
	if left, unseen := h.NotRemoved(t.Context(), mine, nil); len(left) != 0 || unseen != "" {
		t.Errorf("disks of VMs that are there: %v %s", left, unseen)
	}
	for _, vm := range mine[:2] {
		volumes, err := h.Volumes(t.Context(), vm)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := h.Remove(t.Context(), vm, volumes, func(string) {}); err != nil {
			t.Fatal(err)
		}
	}
	left, unseen := h.NotRemoved(t.Context(), mine, nil)
	if unseen != "" || len(left) != 1 || !strings.Contains(left[0].Error(), `VM 421 blue-cp-1 is gone, and its volume local-lvm:vm-421-disk-0 is still there`) ||
		!strings.Contains(left[0].Error(), `type "pvesm free local-lvm:vm-421-disk-0" on pve`) {
		t.Errorf("%v %s", left, unseen)
	}
}

func TestATokenThatSeesNoDisksDoesNotSayThatTheyAreGone(t *testing.T) {
	held := slices.DeleteFunc(Privileges(), func(privilege string) bool { return privilege == "Datastore.Audit" })
	h := hostSeenBy(t, map[string][]string{"/": held})
	left, unseen := h.NotRemoved(t.Context(), []VM{{ID: 421, Name: "blue-cp-1", Host: "pve"}}, nil)
	if len(left) != 0 || !strings.Contains(unseen, "not looked up: whether all disks") || !strings.Contains(unseen, "give it Datastore.Audit on /storage/local-lvm") {
		t.Errorf("%v %q", left, unseen)
	}
}
