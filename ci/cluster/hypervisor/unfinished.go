package hypervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/luthermonson/go-proxmox"

	"tazlab.net/castle/ci/cluster/config"
)

// Begun are the nodes of VMs that an earlier create had begun.
func (h *Hypervisor) Begun(begun []int) (nodes []string) {
	for _, node := range h.cluster.Nodes {
		if slices.Contains(begun, node.VMID) {
			nodes = append(nodes, node.Name)
		}
	}
	return nodes
}

// Unfinished are the ids of the VMs that are still to be made, whole or not at all. begun are those that an earlier
// create had begun: of these one that has the cluster's tag is finished by what changes machines that are there.
func (h *Hypervisor) Unfinished(ctx context.Context, begun []int) (ids []int, err error) {
	there, err := h.patientVMs(ctx)
	if err != nil {
		return nil, err
	}
	for _, node := range h.cluster.Nodes {
		if _, has := there[node.VMID]; !has || slices.Contains(begun, node.VMID) {
			ids = append(ids, node.VMID)
		}
	}
	return ids, nil
}

// Removal is how the removal of one unfinished VM goes on: it starts, waits, and ends.
type Removal struct {
	Step    string // "VM 521"; for a note that says nothing, that
	Waiting string // for what, where it does not only start
	Ended   bool
	Err     error // at the end: why the VM is still there
}

// Told tells of a step in which nothing is removed why that is.
func Told(step, why string, tell func(Removal) error) error {
	return errors.Join(tell(Removal{Step: step}), tell(Removal{Step: step, Waiting: why}), tell(Removal{Step: step, Ended: true}))
}

// Unfinished VMs, and what may become of them.
type Unfinished struct {
	Begun []int // by the note of an earlier create
	// Known are the VMs in the state, by node: what is in it is the tools' own business, also when it is half made.
	Known func() (map[string]int, error)
	// Confirmed says that the cluster's removal was confirmed by its name. Nothing else removes a VM that has its tag.
	Confirmed bool
}

// RemoveUnfinished removes the VMs that an earlier create had begun and that no state knows. A clone has neither the
// cluster's tag, which it is given once it is whole, nor has it ever been started. One that has the tag may have been
// finished since from another machine, and hold data: it stays, to be taken into the state. tell takes how it goes
// on.
func (h *Hypervisor) RemoveUnfinished(ctx context.Context, vms Unfinished, tell func(Removal) error) error {
	if len(vms.Begun) == 0 {
		return nil
	}
	inState, err := vms.Known()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, removalLimit) // for all of them
	defer cancel()
	there, err := h.patientVMs(ctx)
	if err != nil {
		return err
	}
	for _, node := range h.cluster.Nodes {
		if _, has := inState[node.Name]; has || !slices.Contains(vms.Begun, node.VMID) {
			continue
		}
		if there[node.VMID].Ours && !vms.Confirmed {
			why := fmt.Sprintf("an earlier create had begun it, and it has the tag of cluster %s by now: "+
				"it is not removed, but taken into the state", h.cluster.Name)
			if err := Told(fmt.Sprintf("VM %d", node.VMID), why, tell); err != nil {
				return err
			}
			continue
		}
		if err := h.removeClone(ctx, node, vms.Confirmed, tell); err != nil {
			return err
		}
	}
	return nil
}

// removeClone removes the VM of a node, as soon as its lock allows.
func (h *Hypervisor) removeClone(ctx context.Context, node config.Node, confirmed bool,
	tell func(Removal) error) error {
	step := fmt.Sprintf("VM %d", node.VMID)
	var last string
	var untold []error
	did, err := h.remove(ctx, removing{
		id: node.VMID,
		listed: func(now VM) error { // a clone under way may not have its name yet
			switch {
			case now.Template:
				return errors.New("it is a template")
			case now.Ours && !confirmed:
				return fmt.Errorf("it has the tag of cluster %s by now, and is left alone: call again", h.cluster.Name)
			case !now.Ours && now.Status == Running:
				return fmt.Errorf("it runs, which no clone does, and is left alone: %s", h.notAClone(node))
			}
			return nil
		},
		read: func(machine *proxmox.VirtualMachine) error {
			if machine.Name != node.Name {
				return fmt.Errorf("its name is %q, not %q: look whose it is", machine.Name, node.Name)
			}
			return nil
		},
		tell: func(what string) {
			if last == "" {
				untold = append(untold, tell(Removal{Step: step}))
			}
			if what != last {
				untold = append(untold, tell(Removal{Step: step, Waiting: "an earlier create left it unfinished: " + what}))
			}
			last = what
		},
	})
	if err != nil {
		err = fmt.Errorf("VM %d was left unfinished by an earlier create and cannot be removed: %w", node.VMID, err)
	}
	if did {
		untold = append(untold, tell(Removal{Step: step, Ended: true, Err: err}))
	}
	return errors.Join(append([]error{err}, untold...)...)
}

// notAClone says what to do about a VM that is more than the clone which a note speaks of.
func (h *Hypervisor) notAClone(node config.Node) string {
	return fmt.Sprintf("if it is the cluster's, give it the tag %s; if nobody needs it, %s removes it",
		h.cluster.Tag(), h.wipeCall(node.VMID))
}

// wipeCall removes a VM that has not the cluster's tag.
func (h *Hypervisor) wipeCall(id int) string {
	return fmt.Sprintf("dagger call nuclear-wipe --cluster %s --include-untagged %d", h.cluster.Name, id)
}

// patientVMs lists the VMs in the cluster's range by id, and bears some refusals.
func (h *Hypervisor) patientVMs(ctx context.Context) (map[int]VM, error) {
	list, err := h.patientList(ctx, h.cluster.VMIDs.Contains)
	byID := map[int]VM{}
	for _, vm := range list {
		byID[vm.ID] = vm
	}
	return byID, err
}

// patientList is list, and bears some refusals.
func (h *Hypervisor) patientList(ctx context.Context, wanted func(id int) bool) (list []VM, err error) {
	anything := func(error) bool { return true }
	err = removalPatience.Outlast(ctx, anything, func() error {
		list, err = h.list(ctx, wanted)
		return err
	})
	return list, err
}
