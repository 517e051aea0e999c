package hypervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// CheckOwned fails where a VM that the layer platform is about to change or remove is not the cluster's own: at the id of a
// node, described or known to the state, stands a VM of another name, or one without the cluster's tag. Ids are given again
// once a VM is gone, and OpenTofu goes by them alone. known are the VMs in the state, by node. A clone that an earlier create
// had begun has its tag yet to come, and is in the note in the state folder.
func (h *Hypervisor) CheckOwned(ctx context.Context, state string, known map[string]int) error {
	names := map[int][]string{} // a node that was given another name is known by both
	for name, id := range known {
		names[id] = append(names[id], name)
	}
	for _, node := range h.cluster.Nodes {
		names[node.VMID] = append(names[node.VMID], node.Name)
	}
	begun, err := readUnfinished(state)
	if err != nil {
		return err
	}
	vms, err := h.patientList(ctx, func(id int) bool { return names[id] != nil })
	if err != nil {
		return err
	}
	var foreign []error
	for _, vm := range vms {
		if slices.Contains(names[vm.ID], vm.Name) && (vm.Ours || slices.Contains(begun, vm.ID)) {
			continue
		}
		slices.Sort(names[vm.ID])
		foreign = append(foreign, fmt.Errorf("VM %d on %s is %q%s, not %s of cluster %s: it is left alone, and nothing was changed; give the node another vmID, or, if the VM is the cluster's, give it that name and the tag %s again",
			vm.ID, vm.Host, vm.Name, tagged(vm), strings.Join(slices.Compact(names[vm.ID]), " or "), h.cluster.Name, h.cluster.Tag()))
	}
	return errors.Join(foreign...)
}

func tagged(vm VM) string {
	if vm.Ours {
		return ""
	}
	return " without the cluster's tag"
}
