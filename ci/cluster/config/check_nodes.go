package config

import "fmt"

func (k *checker) nodes() {
	ids := k.c.VMIDs
	ranged := k.Has("vmIDs.first") && k.Has("vmIDs.last")
	switch {
	case !ranged:
	case ids.First > ids.Last:
		k.Mistake("vmIDs", "%d to %d is reversed; did you mean {first: %d, last: %d}?", ids.First, ids.Last, ids.Last, ids.First)
		ranged = false
	case ids.First < firstID || ids.Last > lastID:
		k.Mistake("vmIDs", "%d to %d is not within Proxmox's ids, %d to %d; choose a range there", ids.First, ids.Last, firstID, lastID)
	case ids.Last-ids.First+1 < len(k.c.Nodes):
		k.Mistake("vmIDs", "%d to %d has %d ids for %d nodes; make it larger, such as last: %d",
			ids.First, ids.Last, ids.Last-ids.First+1, len(k.c.Nodes), ids.First+len(k.c.Nodes)-1)
	}
	names, taken := map[string]int{}, map[int]int{}
	for i, n := range k.c.Nodes {
		at := func(field string) string { return fmt.Sprintf("nodes[%d].%s", i, field) }
		k.dnsLabel(at("name"), n.Name)
		if first, twice := names[n.Name]; twice && k.Has(at("name")) {
			k.Mistake(at("name"), "%s is the name of nodes[%d] already; give it one of its own", n.Name, first)
		} else {
			names[n.Name] = i
		}
		k.form(at("host"), n.Host, proxmoxNode)
		if k.Has(at("vmID")) {
			if first, twice := taken[n.VMID]; twice {
				k.Mistake(at("vmID"), "%d is the id of %s already; use a free one%s", n.VMID, nodeLabel(first, k.c.Nodes[first]), k.freeID(ranged))
			} else {
				taken[n.VMID] = i
			}
			if ranged && (n.VMID < ids.First || n.VMID > ids.Last) {
				k.Mistake(at("vmID"), "%d is outside the cluster's range, %d to %d; use an id of it%s", n.VMID, ids.First, ids.Last, k.freeID(ranged))
			}
		}
		k.size(i, n)
	}
}

// freeID proposes the first id of the range that no node has.
func (k *checker) freeID(ranged bool) string {
	if !ranged {
		return ""
	}
	used := map[int]bool{}
	for _, n := range k.c.Nodes {
		used[n.VMID] = true
	}
	for id := k.c.VMIDs.First; id <= k.c.VMIDs.Last; id++ {
		if !used[id] {
			return fmt.Sprintf(", such as %d", id)
		}
	}
	return ""
}

func (k *checker) size(i int, n Node) {
	at := func(field string) string { return fmt.Sprintf("nodes[%d].%s", i, field) }
	k.word(at("role"), n.Role)
	least, known := minima[n.Role]
	if !known {
		least = minima[RoleWorker]
	}
	as := map[string]string{RoleControlPlane: " for a control plane", RoleWorker: " for a worker"}[n.Role]
	if k.Has(at("cores")) && n.Cores < least.cores {
		k.Mistake(at("cores"), "%d is too few%s; Talos needs at least %d", n.Cores, as, least.cores)
	}
	if k.Has(at("memory")) && n.Memory < least.memory {
		fix := ""
		if n.Memory > 0 && n.Memory <= 256 {
			fix = fmt.Sprintf("; it is counted in MiB, did you mean %d?", n.Memory*1024)
		}
		k.Mistake(at("memory"), "%d MiB is too little%s; Talos needs at least %d%s", n.Memory, as, least.memory, fix)
	}
	if !k.Has(at("disks")) {
		return
	}
	if len(n.Disks) == 0 {
		k.empty(at("disks"))
	}
	if len(n.Disks) > mostDisks {
		k.Mistake(at("disks"), "are %d; a VM of Proxmox takes %d on its SCSI bus", len(n.Disks), mostDisks)
	}
	k.volumes(i, n)
	for j, d := range n.Disks {
		path := at(fmt.Sprintf("disks[%d].size", j))
		switch {
		case !k.Has(path):
		case j == 0 && d.Size < least.disk:
			k.Mistake(path, "%d GiB is too small for Talos; write at least %d", d.Size, least.disk)
		case d.Size < 1:
			k.Mistake(path, "%d GiB is no size; write at least 1", d.Size)
		}
	}
}

// rolesKnown says whether every node has a role, without which nothing can be said of how many there are of each.
func (k *checker) rolesKnown() bool {
	return k.Has("nodes") && len(k.c.ControlPlanes())+len(k.c.Workers()) == len(k.c.Nodes)
}

func (k *checker) roles() {
	controlPlanes := len(k.c.ControlPlanes())
	if !k.rolesKnown() {
		return
	}
	switch {
	case controlPlanes == 0:
		k.Mistake("nodes", "has no control plane; give one or three nodes the role %s", RoleControlPlane)
	case controlPlanes%2 == 0:
		k.Mistake("nodes", "has %d control planes; etcd's quorum needs an odd number: %d or %d", controlPlanes, controlPlanes-1, controlPlanes+1)
	}
}
