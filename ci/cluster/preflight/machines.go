package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/hypervisor"
)

// template looks whether each template can be cloned to where VMs are to be made from it.
func template(ctx context.Context, s *inspection) []finding {
	found, why := s.seen()
	if why != nil {
		return why
	}
	var wrong []finding
	var fine []string
	for _, id := range s.described.TemplateIDs() {
		seen := s.templateOf(ctx, found, id)
		switch {
		case len(seen) == 1 && seen[0].verdict == OK:
			fine = append(fine, seen[0].seen)
		default:
			wrong = append(wrong, seen...)
		}
	}
	if wrong != nil {
		return wrong
	}
	return ok("%s", strings.Join(fine, ", "))
}

func (s *inspection) templateOf(ctx context.Context, found machines, id int) []finding {
	verdict := Warning // it is for nodes to come
	var across []string
	for _, node := range found.missing {
		clone := s.described.Proxmox.CloneOf(node)
		if clone.Template != id {
			continue
		}
		verdict = Failed
		if clone.Across(node) {
			across = append(across, node.Name)
		}
	}
	i := slices.IndexFunc(found.all, func(vm hypervisor.VM) bool { return vm.ID == id })
	if i < 0 {
		return []finding{{verdict, fmt.Sprintf("there is no VM %d to be cloned", id), "make the template on a Proxmox node as docs/create-a-cluster.md says (A Talos template), or write its id as proxmox.template, or below proxmox.templates"}}
	}
	vm := found.all[i]
	if !vm.Template {
		return []finding{{verdict, fmt.Sprintf("VM %d (%s) is no template", id, vm.Name), fmt.Sprintf("on %s: qm template %d, or write the id of the template as proxmox.template", vm.Host, id)}}
	}
	var elsewhere []string
	for _, node := range found.missing {
		if clone := s.described.Proxmox.CloneOf(node); clone.Template == id && clone.Host != vm.Host {
			elsewhere = append(elsewhere, node.Name)
		}
	}
	if len(elsewhere) > 0 {
		return []finding{{Failed, fmt.Sprintf("the template %d is on %s, and %s would be cloned from it on another Proxmox node", id, vm.Host, strings.Join(elsewhere, ", ")),
			fmt.Sprintf("write host: %[1]s for these nodes, or a template of their own host below proxmox.templates, or templateHost: %[1]s where its disks and proxmox.storage are shared", vm.Host)}}
	}
	linked := verdict == Failed && s.described.Proxmox.LinkedClones
	if len(across) == 0 && !linked {
		return ok("%d (%s) on %s", id, vm.Name, vm.Host)
	}
	storages, err := s.api().Storages(ctx)
	if err != nil {
		return notChecked("%v", err)
	}
	disks, err := s.api().Disks(ctx, vm)
	if err != nil {
		return notChecked("%v", err)
	}
	if len(across) > 0 {
		if wrong := s.unshared(storages, disks, vm, across); wrong != nil {
			return wrong
		}
	}
	if linked {
		if wrong := s.unlinked(storages, disks, vm); wrong != nil {
			return wrong
		}
	}
	return ok("%d (%s) on %s", id, vm.Name, vm.Host)
}

// unshared is why a template cannot be cloned to another Proxmox node: its disks, and the storage that they go to, have to be shared
// (qemu-server, src/PVE/API2/Qemu.pm, clone_vm).
func (s *inspection) unshared(storages []hypervisor.Storage, disks []hypervisor.Disk, template hypervisor.VM, across []string) []finding {
	wrong := func(format string, arguments ...any) []finding {
		return []finding{{Failed, fmt.Sprintf("%s shall be cloned from %s, and ", strings.Join(across, ", "), template.Host) + fmt.Sprintf(format, arguments...),
			fmt.Sprintf("make a template on the host of %s as well and write its id below proxmox.templates", strings.Join(across, ", "))}}
	}
	if slices.ContainsFunc(storages, func(storage hypervisor.Storage) bool { return storage.Exists && !storage.Shared }) {
		return wrong("the storage %s is not shared", s.described.Proxmox.Storage)
	}
	for _, disk := range disks {
		if !disk.Shared {
			return wrong("its disk %s is not on shared storage", disk.Volume)
		}
	}
	return nil
}

// withoutLinks are the types of storage that a disk cannot stand on another one in (pve-storage, PVE/Storage/*Plugin.pm, volume_has_feature).
var withoutLinks = []string{"lvm", "iscsi", "iscsidirect"}

// unlinked is why no linked clone can be made of a template. One whose disk is on another storage could, and would be copied to the
// machines' storage afterwards.
func (s *inspection) unlinked(storages []hypervisor.Storage, disks []hypervisor.Disk, template hypervisor.VM) []finding {
	name := s.described.Proxmox.Storage
	for _, disk := range disks {
		if storage, _, _ := strings.Cut(disk.Volume, ":"); storage != name {
			return []finding{{Failed, fmt.Sprintf("the template %d has its disk on %s (%s), where a linked clone's would be, too, and not on %s", template.ID, storage, disk.Volume, name),
				fmt.Sprintf("write storage: %s below proxmox, make a template whose disk is on %s, or leave linkedClones out", storage, name)}}
		}
	}
	for _, at := range storages {
		if slices.Contains(withoutLinks, at.Type) {
			return []finding{{Failed, fmt.Sprintf("%s on %s is of the type %s, which has no linked clones", name, at.Host, at.Type),
				"leave linkedClones out, or write a storage of another type, such as lvmthin or zfspool, on which the template is, too"}}
		}
	}
	return nil
}

// ids looks whether the nodes' ids are free, or the cluster's own. Disks that a VM left behind have its id still.
func ids(ctx context.Context, s *inspection) []finding {
	found, why := s.seen()
	if why != nil {
		return why
	}
	begun, unread := s.begun(ctx)
	strangers := s.api().Strangers(found.all, begun)
	if len(strangers) > 0 && unread != nil {
		seen := strangers[0].Seen + ", unless an earlier create had begun it, and the store of the states does not say so"
		return notChecked("%s", seeRow(seen, groupStates, "store"))
	}
	var taken []finding
	for _, stranger := range strangers {
		taken = append(taken, finding{Failed, stranger.Seen, stranger.Fix})
	}
	if taken == nil {
		taken = s.leftovers(ctx, found.missing)
	}
	switch all := len(s.described.Nodes); {
	case taken != nil:
		return taken
	case len(found.missing) == all:
		return ok("all %d are free", all)
	case len(found.missing) == 0:
		return ok("all %d are the cluster's own", all)
	default:
		return ok("%d are the cluster's own, %d are free", all-len(found.missing), len(found.missing))
	}
}

// begun are the VMs that an earlier create had begun.
func (s *inspection) begun(ctx context.Context) ([]int, error) {
	values, err := s.files()
	if err != nil {
		return nil, err
	}
	return s.cluster.StateFiles(values).Begun(ctx)
}

// leftovers are the disks that stand in storages under the ids of nodes without a VM. Where they cannot be seen, the
// rows privileges, hosts and storage say why, and a disk is nobody's VM.
func (s *inspection) leftovers(ctx context.Context, missing []config.Node) (found []finding) {
	left, err := s.api().LeftoversOf(ctx, missing)
	if err != nil {
		return nil
	}
	for _, l := range left {
		status, so := Warning, "it takes room"
		if l.Blocks() {
			status, so = Failed, "another one cannot be made"
		}
		found = append(found, finding{status, fmt.Sprintf("%s on %s has the id of %s and is of no VM: %s", l.Volume, l.VM.Host, l.VM.Name, so),
			l.FixOfAnyones()})
	}
	return found
}

const (
	gib = int64(1) << 30
	// leastDisk is what Talos asks of a node's disk, in GiB (docs.siderolabs.com, "System requirements").
	leastDisk = 10
)

// storage looks whether the disks of the VMs that are not there fit. Most storages give a disk its room when it is written to, so that
// more can be promised than there is; less than Talos itself needs is enough on none.
func storage(ctx context.Context, s *inspection) []finding {
	api := s.api()
	if api.why != "" {
		return notChecked("%s", api.why)
	}
	storages, err := api.Storages(ctx)
	if err != nil {
		return notChecked("%v", err)
	}
	vms, unknown := s.seen()
	var found []finding
	var room []string
	for _, at := range storages {
		if wrong := s.unusable(at); wrong != nil {
			found = append(found, wrong...)
			continue
		}
		disks, least := 0, 0
		for _, node := range vms.missing {
			if node.Host != at.Host && !at.Shared {
				continue
			}
			least += leastDisk
			for _, disk := range node.Disks {
				disks += disk.Size
			}
		}
		free := at.Free / gib
		seen := fmt.Sprintf("%s on %s has %d GiB free, and %d GiB of disks are to be made", s.described.Proxmox.Storage, at.Host, free, disks)
		fix := fmt.Sprintf("free some of it (pvesm list %s, on %s), or write smaller disks or another storage in cluster.yaml", s.described.Proxmox.Storage, at.Host)
		switch {
		case free < int64(least) || free < int64(disks) && at.Type == "lvm":
			found = append(found, finding{Failed, seen, fix})
		case free < int64(disks):
			found = append(found, finding{Warning, seen + ", which it has not when they are full", fix})
		case !slices.Contains(room, seen):
			room = append(room, seen)
		}
	}
	switch {
	case found != nil:
		return found
	case unknown != nil:
		return notChecked("it is there, and whether it has room is not known: %s", unknown[0].seen)
	case len(storages) == 0:
		return notChecked("%s", seeRow("no host is online", groupProxmox, "hosts"))
	}
	return ok("%s", strings.Join(room, "; "))
}

// unusable is why no disk can be made on a storage; nil where one can.
func (s *inspection) unusable(at hypervisor.Storage) []finding {
	name := s.described.Proxmox.Storage
	switch {
	case !at.Exists:
		return []finding{{Failed, fmt.Sprintf("there is no storage %s on %s, or the token must not see it", name, at.Host),
			"write a storage that pvesm status shows there as proxmox.storage, and give the token Datastore.Audit on it"}}
	case !at.Usable:
		return []finding{{Failed, fmt.Sprintf("the storage %s is disabled or not active on %s", name, at.Host),
			fmt.Sprintf("on a Proxmox node: pvesm set %s --disable 0, and pvesm status says what else is wrong", name)}}
	case !at.Images:
		return []finding{{Failed, fmt.Sprintf("the storage %s takes no disks of VMs on %s", name, at.Host),
			fmt.Sprintf("add images to its content on a Proxmox node (pvesm set %s --content …), or write another one as proxmox.storage", name)}}
	}
	return nil
}
