package hypervisor

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Proxmox removes with a VM the volumes that its configuration names and that have its id, also those that are
// attached to nothing (unused0), and those that the configuration does not name only where it is asked to
// (destroy-unreferenced-disks; destroy_vm of qemu-server 8.3.13, PVE/QemuServer.pm). castle does not ask for that:
// another VM, or somebody who restores one, may use such a volume.

// owned is a volume by its name, which says which VM's it is: parse_volname of pve-storage 8.3.6,
// src/PVE/Storage/LvmThinPlugin.pm and Plugin.pm.
var owned = regexp.MustCompile(`^[^:]+:(?:.*/)?vm-([0-9]+)-[^/]*$`)

// Volumes are those that go with a VM, in order of their names.
func (h *Hypervisor) Volumes(ctx context.Context, vm VM) ([]string, error) {
	var config map[string]any
	if err := h.client.Get(ctx, fmt.Sprintf("/nodes/%s/qemu/%d/config", vm.Host, vm.ID), &config); err != nil {
		return nil, fmt.Errorf("ask Proxmox at %s for the disks of VM %d %s on %s: %w",
			h.cluster.Proxmox.URL, vm.ID, vm.Name, vm.Host, err)
	}
	return volumesIn(config, vm.ID), nil
}

// volumesIn are the volumes with a VM's id that its configuration names.
func volumesIn(config map[string]any, id int) []string {
	list := []string{}
	for _, value := range config {
		text, _ := value.(string)
		volume, _, _ := strings.Cut(text, ",")
		if match := owned.FindStringSubmatch(volume); match != nil && match[1] == fmt.Sprint(id) {
			list = append(list, volume)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// Unreferenced are the volumes that storages have under the ids of VMs that are there, and that their configurations
// do not name.
func (h *Hypervisor) Unreferenced(ctx context.Context, vms []VM) ([]Leftover, error) {
	list, err := h.volumes(ctx, vms)
	if err != nil {
		return nil, err
	}
	named := map[int][]string{}
	for _, l := range list {
		if _, asked := named[l.VM.ID]; asked {
			continue
		}
		if named[l.VM.ID], err = h.Volumes(ctx, l.VM); err != nil {
			return nil, err
		}
	}
	return slices.DeleteFunc(list, func(l Leftover) bool { return slices.Contains(named[l.VM.ID], l.Volume) }), nil
}

// OthersDisks fails where OpenTofu would remove, with VMs of which its state says so, volumes that their
// configurations do not name.
func (h *Hypervisor) OthersDisks(ctx context.Context, ids []int) error {
	vms, err := h.patientList(ctx, func(id int) bool { return slices.Contains(ids, id) })
	if err != nil {
		return err
	}
	found, err := h.Unreferenced(ctx, vms)
	if err != nil {
		return fmt.Errorf("look which disks OpenTofu would remove beside the machines' own: %w", err)
	}
	var others []error
	for _, l := range found {
		others = append(others, fmt.Errorf("OpenTofu would remove %s with VM %d %s, whose configuration does not name it, "+
			"and nothing was changed: the machine's state is of an earlier castle, and one create changes that; or %s",
			l.Volume, l.VM.ID, l.VM.Name, l.FixOfAnyones()))
	}
	return errors.Join(others...)
}

// onlyListed fails where more would go with a VM than was listed.
func (h *Hypervisor) onlyListed(ctx context.Context, vm VM, listed []string) error {
	now, err := h.Volumes(ctx, vm)
	if err != nil {
		return err
	}
	for _, volume := range now {
		if !slices.Contains(listed, volume) {
			return fmt.Errorf("its volume %s was not listed: it is left alone; list what would go again, and confirm", volume)
		}
	}
	return nil
}
