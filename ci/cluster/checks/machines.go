package checks

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"tazlab.net/castle/ci/cluster/hypervisor"
)

// template looks whether it can be cloned to where VMs are to be made: a clone begins on the host of its template.
func template(_ context.Context, s *sight) []finding {
	found, why := s.seen()
	if why != nil {
		return why
	}
	id := s.described.Proxmox.Template
	verdict := Failed
	if len(found.missing) == 0 {
		verdict = Warning // it is for nodes to come
	}
	i := slices.IndexFunc(found.all, func(vm hypervisor.VM) bool { return vm.ID == id })
	if i < 0 {
		return []finding{{verdict, fmt.Sprintf("there is no VM %d to be cloned", id), "make the template on a Proxmox node as the README says (A Talos template), or write its id as proxmox.template"}}
	}
	vm := found.all[i]
	if !vm.Template {
		return []finding{{verdict, fmt.Sprintf("VM %d (%s) is no template", id, vm.Name), fmt.Sprintf("on %s: qm template %d, or write the id of the template as proxmox.template", vm.Host, id)}}
	}
	var elsewhere []string
	for _, node := range found.missing {
		if node.Host != vm.Host {
			elsewhere = append(elsewhere, node.Name)
		}
	}
	if len(elsewhere) > 0 {
		return []finding{{Failed, fmt.Sprintf("the template %d is on %s, and %s shall stand elsewhere", id, vm.Host, strings.Join(elsewhere, ", ")),
			fmt.Sprintf("write host: %s for these nodes: Proxmox clones a template on its own host only", vm.Host)}}
	}
	return ok("%d (%s) on %s", id, vm.Name, vm.Host)
}

// ids looks whether the nodes' ids are free, or the cluster's own.
func ids(_ context.Context, s *sight) []finding {
	found, why := s.seen()
	if why != nil {
		return why
	}
	strangers, err := s.api().Strangers(found.all, s.cluster.State)
	if err != nil {
		return notChecked("%v", err)
	}
	var taken []finding
	for _, stranger := range strangers {
		taken = append(taken, finding{Failed, stranger.Seen, stranger.Fix})
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

const (
	gib = int64(1) << 30
	// leastDisk is what Talos asks of a node's disk, in GiB (docs.siderolabs.com, "System requirements").
	leastDisk = 10
)

// storage looks whether the disks of the VMs that are not there fit. Most storages give a disk its room when it is written to, so that
// more can be promised than there is; less than Talos itself needs is enough on none.
func storage(ctx context.Context, s *sight) []finding {
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
func (s *sight) unusable(at hypervisor.Storage) []finding {
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
