package hypervisor

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/sandbox/proxmox"
)

// nothing is in the state.
func nothing() (map[string]int, error) { return nil, nil }

// An earlier create on this machine had begun the VM. What became of it since is not in the note.
func TestAnOldNoteRemovesNothingButAClone(t *testing.T) {
	off := func(guest proxmox.Guest) proxmox.Guest {
		guest.Running = false
		return guest
	}
	for name, c := range map[string]struct {
		guest     proxmox.Guest
		known     map[string]int
		confirmed bool
		goes      bool
		told      string // of a VM that stays
		err       string
	}{
		"a clone":                               {guest: off(guest(421, "blue-cp-1")), goes: true},
		"a clone in the state":                  {guest: off(guest(421, "blue-cp-1")), known: map[string]int{"blue-cp-1": 421}},
		"finished from another machine":         {guest: guest(421, "blue-cp-1", "castle", "castle-blue", "controlplane"), told: "it has the tag of cluster blue by now: it is not removed"},
		"finished, and off":                     {guest: off(guest(421, "blue-cp-1", "castle-blue")), told: "it is not removed, but taken into the state"},
		"finished by an earlier castle":         {guest: guest(421, "blue-cp-1", "castle", "blue", "controlplane"), told: "it is not removed"},
		"finished, where the cluster goes":      {guest: guest(421, "blue-cp-1", "castle-blue"), confirmed: true, goes: true},
		"one that runs without a tag":           {guest: guest(421, "blue-cp-1"), err: "it runs, which no clone does, and is left alone: if it is the cluster's, give it the tag castle-blue"},
		"one that runs, where the cluster goes": {guest: guest(421, "blue-cp-1"), confirmed: true, err: "nuclear-wipe --cluster blue --include-untagged 421"},
		"another cluster's":                     {guest: off(guest(421, "green-cp-1", "castle-green")), err: `its name is "green-cp-1", not "blue-cp-1"`},
	} {
		t.Run(name, func(t *testing.T) {
			h := hostWith(t, proxmox.Options{}, c.guest)
			var told []string
			known := func() (map[string]int, error) { return c.known, nil }
			err := h.RemoveUnfinished(t.Context(), Unfinished{[]int{421, 422}, known, c.confirmed}, func(removal Removal) error {
				told = append(told, fmt.Sprint(removal.Step, ": ", removal.Waiting, removal.Ended))
				return nil
			})
			if c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
				t.Errorf("got %v", err)
			}
			if c.told != "" && (len(told) != 3 || !strings.Contains(told[1], c.told)) {
				t.Errorf("it tells %q", told)
			}
			vms, err := h.VMs(t.Context())
			if gone := !slices.ContainsFunc(vms, func(vm VM) bool { return vm.ID == 421 }); err != nil || gone != c.goes {
				t.Errorf("it is gone: %t, %v", gone, err)
			}
		})
	}
}

// What stays is taken into the state, which Finished has the provider import.
func TestAVMWithTheTagIsFinishedWhateverANoteSays(t *testing.T) {
	h := hostWith(t, proxmox.Options{}, guest(421, "blue-cp-1", "castle-blue"), guest(422, "blue-cp-2", "castle", "blue", "controlplane"), guest(423, "blue-cp-3"), guest(424, "db", "castle-blue"))
	finished, err := h.Finished(t.Context())
	if err != nil || len(finished) != 2 || finished["blue-cp-1"] != "pve/421" || finished["blue-cp-2"] != "pve/422" {
		t.Errorf("finished are %v, %v", finished, err)
	}
}
