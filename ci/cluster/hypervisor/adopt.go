package hypervisor

import (
	"context"
	"fmt"
	"slices"
)

// Finished are the described nodes' VMs that are there, by node, as the provider imports them ("pve/421"): each with the node's id
// and name and the cluster's tag, and none that an earlier create had only begun. Where no state knows one, it was lost, and the
// machine is taken into a new one.
func (h *Hypervisor) Finished(ctx context.Context, state string) (map[string]string, error) {
	begun, err := readUnfinished(state)
	if err != nil {
		return nil, err
	}
	there, err := h.patientVMs(ctx)
	if err != nil {
		return nil, err
	}
	finished := map[string]string{}
	for _, node := range h.cluster.Nodes {
		if vm, has := there[node.VMID]; has && vm.Ours && vm.Name == node.Name && !slices.Contains(begun, vm.ID) {
			finished[node.Name] = fmt.Sprintf("%s/%d", vm.Host, vm.ID)
		}
	}
	return finished, nil
}
