package hypervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

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

// Remove stops a VM and removes it with its disks, as it was listed: under the id stands that name still, and the tag where it had it. It
// waits for tasks of Proxmox's that hold it. tell takes what it waits for.
func (h *Hypervisor) Remove(ctx context.Context, vm VM, tell func(string)) (did bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, removalLimit)
	defer cancel()
	for refused, abandoned := 0, 0; ; {
		there, err := h.patientVMs(ctx)
		if err != nil {
			return did, err
		}
		now, has := there[vm.ID]
		if !has {
			return did, nil
		}
		if now.Name != vm.Name || now.Ours != vm.Ours || now.Template {
			return did, fmt.Errorf("VM %d on %s is %q%s by now, and was %q%s when it was listed: it is left alone", vm.ID, now.Host, now.Name, tagged(now), vm.Name, tagged(vm))
		}
		did = true
		lock, err := h.removalStep(ctx, now, tell)
		switch {
		case lock != "":
			busy, err := h.busy(ctx, vm.ID)
			if err != nil {
				return did, err
			}
			tell(fmt.Sprintf("locked (%s)", lock))
			// A task shows up a moment after its lock does.
			if abandoned++; busy {
				abandoned = 0
			}
			if abandoned >= removalTries {
				return did, fmt.Errorf("VM %d is locked (%s), and no task of Proxmox's runs on it; a token must not remove that: type \"qm unlock %d\" on %s, and call again", vm.ID, lock, vm.ID, now.Host)
			}
		case err != nil:
			if refused++; refused >= removalTries || ctx.Err() != nil {
				return did, fmt.Errorf("VM %d %s on %s: %w", vm.ID, vm.Name, now.Host, err)
			}
		default:
			continue
		}
		select {
		case <-time.After(removalEvery):
		case <-ctx.Done():
			return did, fmt.Errorf("VM %d %s on %s is still there: %w", vm.ID, vm.Name, now.Host, context.Cause(ctx))
		}
	}
}

// removalStep stops a VM, or removes one that is off. A locked one is left as it is.
func (h *Hypervisor) removalStep(ctx context.Context, vm VM, tell func(string)) (lock string, err error) {
	machine, err := h.machine(ctx, vm)
	switch {
	case err != nil:
		return "", err
	case machine.Lock != "":
		return machine.Lock, nil
	case machine.IsRunning():
		tell("it is stopped")
		return "", ended(ctx, machine.Stop)
	}
	tell("it is removed")
	return "", ended(ctx, func(ctx context.Context) (*proxmox.Task, error) {
		return machine.Delete(ctx, &proxmox.VirtualMachineDeleteOptions{Purge: true, DestroyUnreferencedDisks: true})
	})
}

// busy tells whether a task of Proxmox's runs on a VM.
func (h *Hypervisor) busy(ctx context.Context, id int) (bool, error) {
	cluster, err := h.client.Cluster(ctx)
	if err != nil {
		return false, err
	}
	tasks, err := cluster.Tasks(ctx)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(tasks, func(task *proxmox.Task) bool {
		// A clone is a task of the VM that is copied.
		return task.EndTime.IsZero() && (task.ID == strconv.Itoa(id) || strings.Contains(task.Type, "clone"))
	}), nil
}
