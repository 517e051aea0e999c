package hypervisor

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tazlab.net/castle/ci/cluster/config"
)

// CheckOwned fails where a VM that the layer platform is about to change or remove is not the cluster's own: at the id of a
// node, described or known to the state, stands a VM of another name, or one without the cluster's tag. Ids are given again
// once a VM is gone, and OpenTofu goes by them alone. known are the VMs in the state, by node. A clone that an earlier create
// had begun has its tag yet to come.
func (h *Hypervisor) CheckOwned(ctx context.Context, begun []int, known map[string]int) error {
	names := map[int][]string{} // a node that was given another name is known by both
	for name, id := range known {
		names[id] = append(names[id], name)
	}
	for _, node := range h.cluster.Nodes {
		names[node.VMID] = append(names[node.VMID], node.Name)
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
		seen, fix := h.notOwned(vm, slices.Compact(names[vm.ID]))
		foreign = append(foreign, fmt.Errorf("%s: it is left alone, and nothing was changed; %s", seen, fix))
	}
	return errors.Join(foreign...)
}

// notOwned tells of a VM at the id of a node what it is instead, and what to do.
func (h *Hypervisor) notOwned(vm VM, names []string) (seen, fix string) {
	seen = fmt.Sprintf("VM %d on %s is %q%s, not %s of cluster %s", vm.ID, vm.Host, vm.Name, tagged(vm), strings.Join(names, " or "), h.cluster.Name)
	fix = fmt.Sprintf("give the node another vmID, or, if the VM is the cluster's, give it that name and the tag %s again", h.cluster.Tag())
	if !vm.Ours && slices.Contains(names, vm.Name) {
		fix += "; if it is a clone that nobody needs, " + h.wipeCall(vm.ID) + " removes it"
	}
	return seen, fix
}

// Stranger is a VM at the id of a described node that is somebody else's.
type Stranger struct {
	VM
	Seen, Fix string
}

// Strangers are the VMs at the ids of described nodes that have not the cluster's tag and that no earlier create had begun: a clone gets its name
// when it ends, and who removes one looks at that. A VM with the tag and another name may be the one of a node that was renamed, which the
// states know: CheckOwned judges it.
func (h *Hypervisor) Strangers(vms []VM, begun []int) (strangers []Stranger) {
	for _, vm := range vms {
		i := slices.IndexFunc(h.cluster.Nodes, func(n config.Node) bool { return n.VMID == vm.ID })
		if i < 0 || vm.Ours && !vm.Template || slices.Contains(begun, vm.ID) {
			continue
		}
		seen, fix := h.notOwned(vm, []string{h.cluster.Nodes[i].Name})
		strangers = append(strangers, Stranger{vm, seen, fix})
	}
	return strangers
}

func tagged(vm VM) string {
	if vm.Ours {
		return ""
	}
	return " without the cluster's tag"
}
