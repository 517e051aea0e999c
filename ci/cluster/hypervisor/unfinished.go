package hypervisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/renameio/v2"
	"github.com/luthermonson/go-proxmox"

	"tazlab.net/castle/ci/cluster/description"
)

// unfinishedFile names, in the state folder, the VMs that were not there when a create set out to make them. A run that is
// killed leaves clones behind that no state knows and that carry no tag yet: only this tells them from somebody else's.
// A machine is taken out of it before it is given its configuration, so that nothing in it ever holds data.
const unfinishedFile = "unfinished-vms.json"

// brokenNote is a note that holds no ids: it is not known what an earlier create had begun.
type brokenNote struct{ err error }

func (b *brokenNote) Error() string {
	return fmt.Sprintf("the note of unfinished VMs does not say which an earlier create had begun: %v", b.err)
}

func (b *brokenNote) Unwrap() error { return b.err }

// readUnfinished reads the note; the error is a *brokenNote where it is there and holds no ids.
func readUnfinished(state string) (ids []int, err error) {
	data, err := os.ReadFile(filepath.Join(state, unfinishedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read which VMs an earlier create had begun: %w", err)
	}
	if err := json.Unmarshal(data, &ids); err != nil {
		return nil, &brokenNote{err}
	}
	return ids, nil
}

// setAside keeps a broken note under another name and tells so: nothing is removed on a guess.
func setAside(state string, broken *brokenNote, tell func(Removal) error) error {
	const step, aside = "note of unfinished VMs", unfinishedFile + ".broken"
	if err := os.Rename(filepath.Join(state, unfinishedFile), filepath.Join(state, aside)); err != nil {
		return fmt.Errorf("set a broken note of unfinished VMs aside: %w", err)
	}
	why := fmt.Sprintf("does not say which VMs an earlier create had begun (%v) and is now %s: where Proxmox says that a VM exists already, remove it by hand", broken.err, aside)
	return errors.Join(tell(Removal{Step: step}), tell(Removal{Step: step, Waiting: why}), tell(Removal{Step: step, Ended: true}))
}

// ForgetUnfinished removes the note of unfinished VMs from a state folder: from here on they hold data, or they are gone.
func ForgetUnfinished(state string) error {
	if err := os.Remove(filepath.Join(state, unfinishedFile)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// ForgetUnfinishedVM takes one VM out of the note: it is about to be configured.
func ForgetUnfinishedVM(state string, id int) error {
	ids, err := readUnfinished(state)
	if err != nil || !slices.Contains(ids, id) {
		return err
	}
	return noteUnfinished(state, slices.DeleteFunc(ids, func(other int) bool { return other == id }))
}

// noteUnfinished writes the note, and removes one that names nothing.
func noteUnfinished(state string, ids []int) error {
	if len(ids) == 0 {
		return ForgetUnfinished(state)
	}
	data, err := json.Marshal(ids)
	if err != nil {
		return err
	}
	return renameio.WriteFile(filepath.Join(state, unfinishedFile), data, 0o600)
}

// Begun are the nodes whose VMs are in the note: an earlier create had begun them, and none holds data yet.
func (h *Hypervisor) Begun(state string) (nodes []string, err error) {
	ids, err := readUnfinished(state)
	for _, node := range h.cluster.Nodes {
		if slices.Contains(ids, node.VMID) {
			nodes = append(nodes, node.Name)
		}
	}
	return nodes, err
}

// NoteUnfinished notes in the state folder the VMs that are still to be made, whole or not at all. Those of an earlier note stay in
// it: it is there because none of them was configured.
func (h *Hypervisor) NoteUnfinished(ctx context.Context, state string) error {
	there, err := h.patientVMs(ctx)
	if err != nil {
		return err
	}
	begun, err := readUnfinished(state)
	if err != nil {
		return err
	}
	unfinished := []int{}
	for _, node := range h.cluster.Nodes {
		if _, has := there[node.VMID]; !has || slices.Contains(begun, node.VMID) {
			unfinished = append(unfinished, node.VMID)
		}
	}
	return noteUnfinished(state, unfinished)
}

// Removal is how the removal of one unfinished VM goes on: it starts, waits, and ends.
type Removal struct {
	Step    string // "VM 521"; for a broken note, that
	Waiting string // for what, where it does not only start
	Ended   bool
	Err     error // at the end: why the VM is still there
}

// RemoveUnfinished removes the VMs that an earlier create had begun, by the note in the state folder, and that no state
// knows: what is in the state is the tools' own business, also when it is half made. known are the VMs in it, by node. tell
// takes how it goes on.
func (h *Hypervisor) RemoveUnfinished(ctx context.Context, state string, known func() (map[string]int, error), tell func(Removal) error) error {
	ids, err := readUnfinished(state)
	if broken, is := errors.AsType[*brokenNote](err); is {
		return setAside(state, broken, tell)
	}
	if err != nil || len(ids) == 0 {
		return err
	}
	inState, err := known()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, removalLimit) // for all of them
	defer cancel()
	for _, node := range h.cluster.Nodes {
		if _, has := inState[node.Name]; has || !slices.Contains(ids, node.VMID) {
			continue
		}
		if err := h.removeLeftover(ctx, node, tell); err != nil {
			return err
		}
	}
	return nil
}

// removeLeftover removes the VM of a node, as soon as its lock allows.
func (h *Hypervisor) removeLeftover(ctx context.Context, node description.Node, tell func(Removal) error) error {
	step := fmt.Sprintf("VM %d", node.VMID)
	var last string
	var untold []error
	did, err := h.remove(ctx, removing{
		id:     node.VMID,
		listed: func(VM) error { return nil }, // a clone under way may not have its name yet
		read: func(machine *proxmox.VirtualMachine) error {
			if machine.Name != node.Name {
				return fmt.Errorf("its name is %q, not %q: look whose it is", machine.Name, node.Name)
			}
			return nil
		},
		options: proxmox.VirtualMachineDeleteOptions{Purge: true},
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
