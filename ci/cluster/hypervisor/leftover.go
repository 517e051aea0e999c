package hypervisor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/luthermonson/go-proxmox"

	"tazlab.net/castle/ci/cluster/config"
)

// Leftover is a volume of a VM that is gone: Proxmox removes a VM also where the storage of its disks is away or busy, and says so in the log
// of a task that ends well (destroy_vm of qemu-server 8.3.13, PVE/QemuServer.pm). A disk keeps its number and its room; a cloud-init drive is
// in the way of the next VM of that id. The right to remove a volume, Datastore.Allocate, is more than a token needs for anything else.
type Leftover struct {
	Volume string // "local-lvm:vm-421-disk-0"
	VM     VM     // as it was
}

// Fix is what to type where.
func (l Leftover) Fix() string {
	return fmt.Sprintf("type \"pvesm free %s\" on %s", l.Volume, l.VM.Host)
}

// FixOfAnyones is Fix for a volume that may be somebody else's.
func (l Leftover) FixOfAnyones() string {
	return "look whose it was, and where nobody needs it, " + l.Fix()
}

// Stays says that a volume stays which the configuration of the VM did not name.
func (l Leftover) Stays() string {
	return fmt.Sprintf("%s on %s has the id of %s, whose configuration did not name it, and stays: %s",
		l.Volume, l.VM.Host, l.VM.Name, l.FixOfAnyones())
}

// Blocks tells that the next VM of that id cannot be made before it is gone: the name of a cloud-init drive has no number.
func (l Leftover) Blocks() bool {
	return strings.Contains(l.Volume, fmt.Sprintf("vm-%d-cloudinit", l.VM.ID))
}

// Mine are the VMs of which a removal of the cluster may say that they were its own: those in its range with its tag, and those that an
// earlier create had begun.
func (h *Hypervisor) Mine(ctx context.Context, begun []int) ([]VM, error) {
	vms, err := h.patientList(ctx, h.cluster.VMIDs.Contains)
	return slices.DeleteFunc(vms, func(vm VM) bool { return vm.Template || !vm.Ours && !slices.Contains(begun, vm.ID) }), err
}

// NotRemoved says of VMs that were removed which volumes were not removed with them, an error each; kept are volumes that were to stay. unseen is
// not empty where that could not be looked up: a token may lack the right, which create does without.
func (h *Hypervisor) NotRemoved(ctx context.Context, removed []VM, kept []Leftover) (left []error, unseen string) {
	found, err := h.leftovers(ctx, removed)
	if err != nil {
		return nil, fmt.Sprintf("not looked up: whether all disks of the machines are gone: %v", err)
	}
	for _, l := range found {
		toStay := func(k Leftover) bool { return k.Volume == l.Volume && k.VM.Host == l.VM.Host }
		if slices.ContainsFunc(kept, toStay) {
			continue
		}
		left = append(left, fmt.Errorf("VM %d %s is gone, and its volume %s is still there, since the storage was away or busy; a token must not remove it: %s",
			l.VM.ID, l.VM.Name, l.Volume, l.Fix()))
	}
	return left, ""
}

// LeftoversOf are the volumes under the ids of nodes without a VM, whoever they belong to.
func (h *Hypervisor) LeftoversOf(ctx context.Context, nodes []config.Node) ([]Leftover, error) {
	var vms []VM
	for _, node := range nodes {
		vms = append(vms, VM{ID: node.VMID, Name: node.Name, Host: node.Host})
	}
	return h.leftovers(ctx, vms)
}

// leftovers are the volumes that are left of VMs, where no VM has their id any more.
func (h *Hypervisor) leftovers(ctx context.Context, of []VM) (left []Leftover, err error) {
	if len(of) == 0 {
		return nil, nil
	}
	there, err := h.All(ctx)
	if err != nil {
		return nil, err
	}
	return h.volumes(ctx, slices.DeleteFunc(slices.Clone(of), func(vm VM) bool {
		return slices.ContainsFunc(there, func(other VM) bool { return other.ID == vm.ID })
	}))
}

// volumes are those that storages have under the ids of VMs: the cluster's storage on their hosts, and each other one that holds disks and that
// the token sees.
func (h *Hypervisor) volumes(ctx context.Context, of []VM) (list []Leftover, err error) {
	at := map[string][]VM{}
	for _, vm := range of {
		at[vm.Host] = append(at[vm.Host], vm)
	}
	for host, vms := range at {
		storages, err := h.diskStorages(ctx, host)
		if err != nil {
			return nil, err
		}
		for _, storage := range storages {
			var volumes []proxmox.StorageContent
			if err := h.client.Get(ctx, fmt.Sprintf("/nodes/%s/storage/%s/content?content=images", host, storage), &volumes); err != nil {
				return nil, fmt.Errorf("ask Proxmox at %s which disks %s on %s has: %w", h.cluster.Proxmox.URL, storage, host, err)
			}
			for _, volume := range volumes {
				if i := slices.IndexFunc(vms, func(vm VM) bool { return uint64(vm.ID) == volume.VMID }); i >= 0 {
					list = append(list, Leftover{volume.Volid, vms[i]})
				}
			}
		}
	}
	slices.SortFunc(list, func(a, b Leftover) int { return strings.Compare(a.Volume, b.Volume) })
	return list, nil
}

// diskStorages are those of a host in which the token sees disks: Proxmox leaves them out, silently, where it lacks the right. The cluster's
// own is among them, or it is an error.
func (h *Hypervisor) diskStorages(ctx context.Context, host string) (names []string, err error) {
	const privilege = "Datastore.Audit"
	path := func(storage string) string { return "/storage/" + storage }
	storages, err := h.storagesOf(ctx, host)
	if err != nil {
		return nil, err
	}
	own := h.cluster.Proxmox.Storage
	for _, storage := range storages {
		if !holdsDisks(storage) || storage.Active == 0 && storage.Name != own {
			continue
		}
		at := path(storage.Name)
		permissions, err := h.client.Permissions(ctx, &proxmox.PermissionsOptions{Path: at})
		if err != nil {
			return nil, fmt.Errorf("ask Proxmox at %s what the token may do: %w", h.cluster.Proxmox.URL, err)
		}
		if permissions[at][privilege] {
			names = append(names, storage.Name)
		}
	}
	if !slices.Contains(names, own) {
		return nil, fmt.Errorf("the token of Proxmox at %s sees no disks in %s on %s: give it %s on %s", h.cluster.Proxmox.URL, own, host, privilege, path(own))
	}
	return names, nil
}
