package hypervisor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/renameio/v2"
	"github.com/luthermonson/go-proxmox"

	"tazlab.net/castle/ci/cluster/description"
)

// unfinishedFile names, in the state folder, the VMs that were not there when a create set out to make them. A run that is
// killed leaves clones behind that no state knows and that carry no tag yet: only this tells them from somebody else's.
// A machine is taken out of it before it is given its configuration, so that nothing in it ever holds data.
const unfinishedFile = "unfinished-vms.json"

const (
	removalLimit = 15 * time.Minute // for all leftovers; a clone under way cannot be removed before its end
	removalTries = 5                // Proxmox's locks answer with errors that pass
	removalEvery = time.Second
)

var removalPatience = Patience{Tries: removalTries, Pause: removalEvery}

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
	ctx, cancel := context.WithTimeout(ctx, removalLimit)
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
	told, tries := false, 0
	for {
		gone, why, err := h.tryRemoval(ctx, node)
		switch {
		case gone && !told:
			return nil
		case gone:
			return tell(Removal{Step: step, Ended: true})
		case err != nil || ctx.Err() != nil:
			if tries++; tries >= removalTries || ctx.Err() != nil {
				err = cmp.Or(err, ctx.Err())
				err = fmt.Errorf("VM %d was left unfinished by an earlier create and cannot be removed: %w", node.VMID, err)
				return errors.Join(err, tell(Removal{Step: step, Ended: true, Err: err}))
			}
		case !told:
			told = true
			if err := errors.Join(tell(Removal{Step: step}), tell(Removal{Step: step, Waiting: why})); err != nil {
				return err
			}
		}
		select {
		case <-time.After(removalEvery):
		case <-ctx.Done():
		}
	}
}

// tryRemoval takes the next step: it waits for nothing but Proxmox's own tasks.
func (h *Hypervisor) tryRemoval(ctx context.Context, node description.Node) (gone bool, why string, err error) {
	there, err := h.patientVMs(ctx)
	if err != nil {
		return false, "", err
	}
	found, has := there[node.VMID]
	if !has {
		return true, "", nil
	}
	machine, err := h.machine(ctx, found)
	if err != nil {
		return false, "", err
	}
	switch {
	case machine.Lock != "":
		return false, fmt.Sprintf("an earlier create left it unfinished; it is removed when Proxmox unlocks it (%s)", machine.Lock), nil
	case machine.Name != node.Name:
		return false, "", fmt.Errorf("its name is %q, not %q: look whose it is", machine.Name, node.Name)
	case machine.IsRunning():
		return false, "an earlier create left it unfinished; it is stopped and removed", ended(ctx, machine.Stop)
	}
	return false, "an earlier create left it unfinished; it is removed", ended(ctx, func(ctx context.Context) (*proxmox.Task, error) {
		return machine.Delete(ctx, &proxmox.VirtualMachineDeleteOptions{Purge: true})
	})
}

// ended starts a task and waits for its end.
func ended(ctx context.Context, start func(context.Context) (*proxmox.Task, error)) error {
	task, err := start(ctx)
	if err != nil {
		return err
	}
	if err := task.Wait(ctx, removalEvery/2, removalLimit); err != nil {
		return err
	}
	if task.IsFailed {
		return fmt.Errorf("proxmox's task ended with %s", task.ExitStatus)
	}
	return nil
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
