package hypervisor

import (
	"context"
	"fmt"
)

// Finished are the described nodes' VMs that are there, by node, as the provider imports them ("pve/421"): each with
// the node's id and name and the cluster's tag, which a clone is given once it is whole. Where no state knows one, it
// was lost, and the machine is taken into a new one.
func (h *Hypervisor) Finished(ctx context.Context) (map[string]string, error) {
	there, err := h.patientVMs(ctx)
	if err != nil {
		return nil, err
	}
	finished := map[string]string{}
	for _, node := range h.cluster.Nodes {
		if vm, has := there[node.VMID]; has && vm.Ours && vm.Name == node.Name {
			finished[node.Name] = fmt.Sprintf("%s/%d", vm.Host, vm.ID)
		}
	}
	return finished, nil
}
