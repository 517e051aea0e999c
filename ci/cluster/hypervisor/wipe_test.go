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
	template := proxmox.Guest{VM: proxmox.VM{ID: 432, Name: "golden", Tags: []string{"blue"}}, Template: true}
	h := hostWith(t, proxmox.Options{}, guest(420, "before", "blue"), guest(421, "blue-cp-1", "blue", "castle"), guest(422, "renamed", "blue"), guest(425, "db"),
		guest(426, "green-cp-1", "green"), template, guest(433, "behind", "blue"), guest(500, "other"))
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
425 stays: it has not the tag blue
426 stays: it has not the tag blue
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
	h := hostWith(t, proxmox.Options{}, guest(421, "blue-cp-1", "blue"), guest(422, "blue-cp-2", "blue"))
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
		if _, err := h.Remove(t.Context(), other, func(string) {}); err == nil || !strings.Contains(err.Error(), "it is left alone") {
			t.Errorf("%+v was listed: %v", other, err)
		}
	}
	if got := ids(); !slices.Equal(got, []int{421, 422}) {
		t.Fatalf("there are %v", got)
	}
	var told []string
	for _, did := range []bool{true, false} { // the second call finds nothing to do
		if got, err := h.Remove(t.Context(), listed[0], func(text string) { told = append(told, text) }); err != nil || got != did {
			t.Fatalf("did something: %t, %v", got, err)
		}
	}
	if want := []string{"it is stopped", "it is removed"}; !slices.Equal(told, want) || !slices.Equal(ids(), []int{422}) {
		t.Errorf("told %q, there are %v", told, ids())
	}
}
