package hypervisor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/luthermonson/go-proxmox"
)

// Running is the status of a VM that is on.
const Running = "running"

// Own finds the cluster's VM of a node: in its range of ids, with its tag and the node's name. It is nil where there is none.
func (h *Hypervisor) Own(ctx context.Context, node string) (*VM, error) {
	there, err := h.patientVMs(ctx)
	if err != nil {
		return nil, err
	}
	var found []VM
	for _, vm := range there {
		if vm.Ours && vm.Name == node {
			found = append(found, vm)
		}
	}
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return &found[0], nil
	}
	return nil, fmt.Errorf("two VMs of Proxmox are the cluster's and called %s, %d and %d: give the wrong one another name, or remove it", node, found[0].ID, found[1].ID)
}

// AwaitOff waits until the cluster's VM of a node is off or gone; false where that took longer than the limit.
func (h *Hypervisor) AwaitOff(ctx context.Context, node string, limit time.Duration) (bool, error) {
	for end := time.Now().Add(limit); ; {
		vm, err := h.Own(ctx, node)
		if err != nil {
			return false, err
		}
		if vm == nil || vm.Status != Running {
			return true, nil
		}
		if time.Now().After(end) {
			return false, nil
		}
		select {
		case <-time.After(removalEvery):
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
}

// Process is the number of the process on the Proxmox node that the cluster's VM of a node is, another one after each start; 0 where it is
// off.
func (h *Hypervisor) Process(ctx context.Context, node string) (uint64, error) {
	machine, _, err := h.own(ctx, node)
	if err != nil {
		return 0, err
	}
	return uint64(machine.PID), nil
}

// UUID is what Proxmox gave the cluster's VM of a node to be known by from within: the firmware tells it to the
// machine.
func (h *Hypervisor) UUID(ctx context.Context, node string) (string, error) {
	machine, id, err := h.own(ctx, node)
	if err != nil {
		return "", err
	}
	if machine.VirtualMachineConfig != nil {
		for part := range strings.SplitSeq(machine.VirtualMachineConfig.SMBios1, ",") {
			if uuid, is := strings.CutPrefix(part, "uuid="); is {
				return uuid, nil
			}
		}
	}
	return "", fmt.Errorf("VM %d of %s has no UUID, by which its machine is known: "+
		"on its Proxmox node type \"qm set %[1]d --smbios1 uuid=$(uuidgen)\", and restart it", id, node)
}

// Reboot shuts the cluster's VM of a node down and starts it again, which applies what was changed of it meanwhile.
func (h *Hypervisor) Reboot(ctx context.Context, node string) error {
	return h.power(ctx, node, "restart", func(ctx context.Context, machine *proxmox.VirtualMachine) (*proxmox.Task, error) {
		return machine.Reboot(ctx)
	})
}

// downSeconds is how long a machine may take to shut down before its power is cut: what OpenTofu is given in the layer's module.
const downSeconds = 120

// PowerOff shuts the cluster's VM of a node down, and cuts its power where that does not end. One that is off is left so.
func (h *Hypervisor) PowerOff(ctx context.Context, node string) error {
	return h.power(ctx, node, "shut down", func(ctx context.Context, machine *proxmox.VirtualMachine) (*proxmox.Task, error) {
		var upid proxmox.UPID
		if err := h.client.Post(ctx, fmt.Sprintf("/nodes/%s/qemu/%d/status/shutdown", machine.Node, machine.VMID), map[string]int{"forceStop": 1, "timeout": downSeconds}, &upid); err != nil {
			return nil, err
		}
		return proxmox.NewTask(upid, h.client), nil
	})
}

// PowerOn starts the cluster's VM of a node where it is off.
func (h *Hypervisor) PowerOn(ctx context.Context, node string) error {
	if process, err := h.Process(ctx, node); err != nil || process != 0 {
		return err
	}
	return h.power(ctx, node, "start", func(ctx context.Context, machine *proxmox.VirtualMachine) (*proxmox.Task, error) {
		return machine.Start(ctx)
	})
}

// power has the cluster's VM of a node do something, and waits for the end of it. It bears some refusals.
func (h *Hypervisor) power(ctx context.Context, node, what string, do func(context.Context, *proxmox.VirtualMachine) (*proxmox.Task, error)) error {
	machine, id, err := h.own(ctx, node)
	if err != nil {
		return err
	}
	err = removalPatience.Outlast(ctx, Passes, func() error {
		return ended(ctx, func(ctx context.Context) (*proxmox.Task, error) { return do(ctx, machine) })
	})
	if err != nil {
		return fmt.Errorf("%s VM %d of %s: %w", what, id, node, err)
	}
	return nil
}

// own opens the cluster's VM of a node, which has to be there.
func (h *Hypervisor) own(ctx context.Context, node string) (machine *proxmox.VirtualMachine, id int, err error) {
	vm, err := h.Own(ctx, node)
	if err == nil && vm == nil {
		err = fmt.Errorf("no VM of the cluster is called %s", node)
	}
	if err != nil {
		return nil, 0, err
	}
	machine, err = h.machine(ctx, *vm)
	return machine, vm.ID, err
}
