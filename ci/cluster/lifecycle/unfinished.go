package lifecycle

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/luthermonson/go-proxmox"

	"tazlab.net/castle/ci/cluster/description"
	"tazlab.net/castle/ci/cluster/timeline"
)

// unfinishedFile names, in the state folder, the VMs that were not there when a create set out to make them. A run that is
// killed leaves clones behind that no state knows and that carry no tag yet: only this tells them from somebody else's.
// It is removed before the first machine is given its configuration, so that nothing in it ever holds data.
const unfinishedFile = "unfinished-vms.json"

const (
	removalLimit = 15 * time.Minute // for all leftovers; a clone under way cannot be removed before its end
	removalTries = 5                // Proxmox's locks answer with errors that pass
	removalEvery = time.Second
)

func readUnfinished(state string) ([]int, error) {
	data, err := os.ReadFile(filepath.Join(state, unfinishedFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	var ids []int
	if err == nil {
		err = json.Unmarshal(data, &ids)
	}
	if err != nil {
		return nil, fmt.Errorf("read which VMs an earlier create had begun: %w", err)
	}
	return ids, nil
}

func forgetUnfinished(state string) error {
	if err := os.Remove(filepath.Join(state, unfinishedFile)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// noteUnfinished notes the VMs that are still to be made, whole or not at all.
func (c *Cluster) noteUnfinished(ctx context.Context, access *access) error {
	there, err := c.patientVMs(ctx, access)
	if err != nil {
		return err
	}
	absent := []int{}
	for _, node := range c.description.Nodes {
		if _, has := there[node.VMID]; !has {
			absent = append(absent, node.VMID)
		}
	}
	if len(absent) == 0 {
		return forgetUnfinished(c.State)
	}
	data, err := json.Marshal(absent)
	if err != nil {
		return err
	}
	file := filepath.Join(c.State, unfinishedFile)
	if err := os.WriteFile(file+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// removeUnfinished removes the VMs that an earlier create had begun and no state knows. What is in the state is the
// tools' own business, also when it is half made.
func (c *Cluster) removeUnfinished(ctx context.Context, run *run, access *access) error {
	ids, err := readUnfinished(c.State)
	if err != nil || len(ids) == 0 {
		return err
	}
	resources, err := c.resources(ctx, access, LayerPlatform)
	if err != nil {
		return err
	}
	begun := map[int]bool{}
	for _, id := range ids {
		begun[id] = true
	}
	ctx, cancel := context.WithTimeout(ctx, removalLimit)
	defer cancel()
	for _, node := range c.description.Nodes {
		if !begun[node.VMID] || inState(resources, node.Name) {
			continue
		}
		if err := c.removeLeftover(ctx, run, access, node); err != nil {
			return err
		}
	}
	return nil
}

// inState tells whether a node's VM is among the addresses of a state.
func inState(addresses []string, node string) bool {
	for _, address := range addresses {
		if strings.HasSuffix(address, fmt.Sprintf(".node[%q]", node)) {
			return true
		}
	}
	return false
}

// removeLeftover removes the VM of a node, as soon as its lock allows.
func (c *Cluster) removeLeftover(ctx context.Context, run *run, access *access, node description.Node) error {
	event := timeline.Event{Kind: timeline.KindStep, Cluster: c.description.Name, Layer: LayerPlatform, Name: fmt.Sprintf("VM %d", node.VMID), Phase: timeline.PhaseStart}
	tell := func(phase, result, cause string) error {
		event.Phase, event.Result, event.Cause = phase, result, cause
		return run.log.Append(event)
	}
	told, tries := false, 0
	for {
		gone, why, err := c.tryRemoval(ctx, access, node)
		switch {
		case gone && !told:
			return nil
		case gone:
			return tell(timeline.PhaseEnd, timeline.ResultOK, "")
		case err != nil || ctx.Err() != nil:
			if tries++; tries >= removalTries || ctx.Err() != nil {
				err = cmp.Or(err, ctx.Err())
				err = fmt.Errorf("VM %d was left unfinished by an earlier create and cannot be removed: %w", node.VMID, err)
				return errors.Join(err, tell(timeline.PhaseEnd, timeline.ResultFailed, err.Error()))
			}
		case !told:
			told = true
			if err := errors.Join(tell(timeline.PhaseStart, "", ""), tell(timeline.PhaseWaiting, "", why)); err != nil {
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
func (c *Cluster) tryRemoval(ctx context.Context, access *access, node description.Node) (gone bool, why string, err error) {
	there, err := c.patientVMs(ctx, access)
	if err != nil {
		return false, "", err
	}
	found, has := there[node.VMID]
	if !has {
		return true, "", nil
	}
	client, done := c.proxmox(access)
	defer done()
	host, err := client.Node(ctx, found.Host)
	if err != nil {
		return false, "", err
	}
	machine, err := host.VirtualMachine(ctx, found.ID)
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
func (c *Cluster) patientVMs(ctx context.Context, access *access) (map[int]vm, error) {
	for try := 1; ; try++ {
		list, err := c.vms(ctx, access)
		if err == nil {
			byID := map[int]vm{}
			for _, vm := range list {
				byID[vm.ID] = vm
			}
			return byID, nil
		}
		if try == removalTries || ctx.Err() != nil {
			return nil, err
		}
		select {
		case <-time.After(removalEvery):
		case <-ctx.Done():
		}
	}
}
