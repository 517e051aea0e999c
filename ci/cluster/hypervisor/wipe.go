package hypervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/luthermonson/go-proxmox"
)

// Staying is a VM that is not the cluster's to remove, and why.
type Staying struct {
	VM
	Why string
}

// Condemned tells which VMs a wipe of the cluster removes: those in its range of ids with its tag, and of the others in the range those whose
// ids are named; an id outside of it names nothing. A template never is. Stay are the VMs that could be taken for the cluster's, by their id or their tag.
func (h *Hypervisor) Condemned(ctx context.Context, untagged []int) (remove []VM, stay []Staying, err error) {
	all, err := h.All(ctx)
	if err != nil {
		return nil, nil, err
	}
	var wrong []error
	for _, id := range untagged {
		i := slices.IndexFunc(all, func(vm VM) bool { return vm.ID == id })
		switch {
		case i < 0:
			wrong = append(wrong, fmt.Errorf("--include-untagged %d: there is no such VM", id))
		case all[i].Template:
			wrong = append(wrong, fmt.Errorf("--include-untagged %d: %s is a template", id, all[i].Name))
		}
	}
	if len(wrong) > 0 {
		return nil, nil, errors.Join(wrong...)
	}
	for _, vm := range all {
		inRange := h.cluster.VMIDs.Contains(vm.ID)
		switch {
		case !inRange && !vm.Ours:
		case vm.Template:
			stay = append(stay, Staying{vm, "it is a template"})
		case !inRange:
			stay = append(stay, Staying{vm, fmt.Sprintf("its id is outside %d to %d", h.cluster.VMIDs.First, h.cluster.VMIDs.Last)})
		case vm.Ours || slices.Contains(untagged, vm.ID):
			remove = append(remove, vm)
		default:
			stay = append(stay, Staying{vm, fmt.Sprintf("it has not the tag %s", h.cluster.Tag())})
		}
	}
	return remove, stay, nil
}

// Remove stops a VM and removes it with the volumes that were listed, as it was listed: under the id stands that name still, and the tag where
// it had it, and no other volume would go with it. It waits for tasks of Proxmox's that hold it. tell takes what it waits for.
func (h *Hypervisor) Remove(ctx context.Context, vm VM, volumes []string, tell func(string)) (did bool, err error) {
	return h.remove(ctx, removing{
		id: vm.ID,
		listed: func(now VM) error {
			if now.Name != vm.Name || now.Ours != vm.Ours || now.Template {
				return fmt.Errorf("VM %d on %s is %q%s by now, and was %q%s when it was listed: it is left alone", vm.ID, now.Host, now.Name, tagged(now), vm.Name, tagged(vm))
			}
			return nil
		},
		read: func(*proxmox.VirtualMachine) error { return h.onlyListed(ctx, vm, volumes) },
		tell: tell,
	})
}
