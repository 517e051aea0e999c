package proxmox

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// What each call takes, by its method and path, and no other parameter. Sources: qemu-server 8.3.13 (PVE/API2/Qemu.pm, PVE/API2/Qemu/Agent.pm),
// pve-manager 8.4.1 (PVE/API2.pm and PVE/API2/: Cluster.pm, Network.pm, Nodes.pm, Pool.pm, Tasks.pm), pve-storage 8.3.6
// (src/PVE/API2/Storage/: Config.pm, Content.pm, Status.pm), pve-access-control 8.2.2 (src/PVE/API2/AccessControl.pm). They are those of
// Proxmox VE 8.4, the version that the simulator says it is. Those of a path are among them.
var callParameters = map[string]schema{
	"GET /version":            {},
	"GET /cluster/status":     {},
	"GET /cluster/resources":  {"type": {enum: words("vm storage node sdn")}},
	"GET /cluster/nextid":     {"vmid": vmID},
	"GET /cluster/tasks":      {},
	"GET /storage":            {"type": {enum: words("btrfs cephfs cifs dir esxi glusterfs iscsi iscsidirect lvm lvmthin nfs pbs rbd zfs zfspool")}},
	"GET /pools":              {"poolid": {format: formatPool}, "type": {enum: words("qemu lxc storage"), needs: "poolid"}},
	"GET /access/permissions": {"userid": {pattern: whole(`[^\s:/]+@[A-Za-z][A-Za-z0-9.\-_]+(?:![A-Za-z][A-Za-z0-9.\-_]+)?`), unplayed: true}, "path": {}},

	"GET /nodes":                {},
	"GET /nodes/{node}/status":  onNode,
	"GET /nodes/{node}/version": onNode,
	"GET /nodes/{node}/network": onNode.with(schema{
		"type": {enum: words("bridge bond eth alias vlan OVSBridge OVSBond OVSPort OVSIntPort vnet any_bridge any_local_bridge")},
	}),
	"GET /nodes/{node}/storage": onNode.with(schema{
		"storage": {format: formatStorageID, unplayed: true}, "content": {format: formatContent, list: true, unplayed: true},
		"enabled": {kind: boolean}, "target": unplayed(nodeName), "format": {kind: boolean},
	}),
	"GET /nodes/{node}/storage/{storage}/status":           onStorage,
	"GET /nodes/{node}/storage/{storage}/content":          onStorage.with(schema{"content": {format: formatContent}, "vmid": vmID}),
	"GET /nodes/{node}/storage/{storage}/content/{volume}": onStorage.with(schema{"volume": {required: true}}),
	"GET /nodes/{node}/tasks": onNode.with(schema{
		"start": count, "limit": count, "vmid": vmID, "source": {enum: words("archive active all")}, "userfilter": {unplayed: true},
		"typefilter": {unplayed: true},
		"errors":     {kind: boolean, unplayed: true}, "since": {kind: integer, unplayed: true}, "until": {kind: integer, unplayed: true},
		"statusfilter": {format: formatTaskStatus, list: true, unplayed: true},
	}),
	"GET /nodes/{node}/tasks/{upid}/status": onTask,
	"GET /nodes/{node}/tasks/{upid}/log":    onTask.with(schema{"start": count, "limit": count, "download": {kind: boolean, unplayed: true}}),
	"DELETE /nodes/{node}/tasks/{upid}":     onTask,

	"GET /nodes/{node}/qemu": onNode.with(schema{"full": {kind: boolean}}),
	"POST /nodes/{node}/qemu": onVM.with(configuration, schema{
		"archive": {longest: 255, unplayed: true}, "storage": {format: formatStorageID}, "force": {kind: boolean, needs: "archive"},
		"unique":       {kind: boolean, needs: "archive"},
		"live-restore": {kind: boolean, unplayed: true}, "pool": {format: formatPool}, "bwlimit": count, "start": {kind: boolean},
		"import-working-storage": {format: formatStorageID, unplayed: true},
	}),
	"DELETE /nodes/{node}/qemu/{vmid}": onVM.with(schema{
		"skiplock": rootOnly, "purge": {kind: boolean}, "destroy-unreferenced-disks": {kind: boolean},
	}),
	"GET /nodes/{node}/qemu/{vmid}/status/current": onVM,
	"POST /nodes/{node}/qemu/{vmid}/status/start": onVM.with(schema{
		"skiplock": rootOnly, "stateuri": unplayed(prop{longest: 128}), "migratedfrom": unplayed(optional(nodeName)), "migration_type": {enum: words("secure insecure"), unplayed: true},
		"migration_network": {format: formatCIDR, unplayed: true}, "machine": unplayed(machineProperty),
		"force-cpu": {unplayed: true}, "targetstorage": {format: formatStoragePair, list: true, unplayed: true}, "timeout": count,
	}),
	"POST /nodes/{node}/qemu/{vmid}/status/stop": onVM.with(schema{
		"skiplock": rootOnly, "migratedfrom": unplayed(optional(nodeName)), "timeout": count, "keepActive": rootOnly, "overrule-shutdown": {kind: boolean},
	}),
	"POST /nodes/{node}/qemu/{vmid}/status/shutdown": onVM.with(schema{
		"skiplock": rootOnly, "timeout": count, "forceStop": {kind: boolean}, "keepActive": rootOnly,
	}),
	"POST /nodes/{node}/qemu/{vmid}/status/reboot": onVM.with(schema{"timeout": count}),
	"POST /nodes/{node}/qemu/{vmid}/status/reset":  onVM.with(schema{"skiplock": rootOnly}),
	"GET /nodes/{node}/qemu/{vmid}/config": onVM.with(schema{
		"current": {kind: boolean}, "snapshot": {format: formatConfigID, longest: 40, unplayed: true},
	}),
	"PUT /nodes/{node}/qemu/{vmid}/config": onVM.with(configuration, changing),
	"POST /nodes/{node}/qemu/{vmid}/config": onVM.with(configuration, changing, schema{
		"background_delay": {kind: integer, least: at(1), most: at(30)}, "import-working-storage": {format: formatStorageID, unplayed: true},
	}),
	"PUT /nodes/{node}/qemu/{vmid}/cloudinit": onVM,
	"PUT /nodes/{node}/qemu/{vmid}/resize": onVM.with(schema{
		"skiplock": rootOnly, "disk": {required: true, enum: driveOptions()},
		"size": {required: true, pattern: whole(`\+?\d+(?:\.\d+)?[KMGT]?`)}, "digest": digest,
	}),
	"POST /nodes/{node}/qemu/{vmid}/move_disk": onVM.with(schema{
		"disk": {required: true, enum: append(driveOptions(), each("unused")...)}, "storage": {format: formatStorageID},
		"format": diskFormat, "delete": {kind: boolean}, "digest": digest, "bwlimit": count,
		"target-vmid": unplayed(vmID), "target-disk": {unplayed: true}, "target-digest": unplayed(digest),
	}),
	"POST /nodes/{node}/qemu/{vmid}/clone": onVM.with(schema{
		"newid": {kind: integer, required: true, format: formatVMID}, "name": {format: formatDNSName}, "description": {},
		"pool": {format: formatPool}, "snapname": {format: formatConfigID, longest: 40, unplayed: true},
		"storage": {format: formatStorageID}, "format": diskFormat, "full": {kind: boolean}, "target": optional(nodeName), "bwlimit": count,
	}),
	"POST /nodes/{node}/qemu/{vmid}/template": onVM.with(schema{"disk": {enum: driveOptions(), unplayed: true}}),
	"POST /nodes/{node}/qemu/{vmid}/migrate": onVM.with(schema{
		"target": nodeName, "online": {kind: boolean}, "force": rootOnly,
		"migration_type": {enum: words("secure insecure"), root: true}, "migration_network": {format: formatCIDR, root: true},
		"with-local-disks": {kind: boolean},
		"targetstorage":    {format: formatStoragePair, list: true, unplayed: true}, "bwlimit": count,
	}),
	"GET /nodes/{node}/qemu/{vmid}/agent/network-get-interfaces": onVM,
	"POST /nodes/{node}/qemu/{vmid}/agent/ping":                  onVM,
}

var (
	nodeName   = prop{required: true, format: formatNode}
	vmID       = prop{kind: integer, format: formatVMID}
	count      = prop{kind: integer, least: at(0)}
	digest     = prop{longest: 40}
	rootOnly   = prop{kind: boolean, root: true}
	diskFormat = prop{enum: words("raw qcow2 vmdk")}

	onNode    = schema{"node": nodeName}
	onVM      = onNode.with(schema{"vmid": {kind: integer, required: true, format: formatVMID}})
	onStorage = onNode.with(schema{"storage": {required: true, format: formatStorageID}})
	onTask    = onNode.with(schema{"upid": {required: true}})

	// changing is what a change of a configuration takes beside its options.
	changing = schema{
		"skiplock": rootOnly, "delete": {format: formatConfigID, list: true},
		"revert": {format: formatConfigID, list: true, unplayed: true}, "force": {kind: boolean, needs: "delete"}, "digest": digest,
	}

	configuration = allOptions()
)

func optional(p prop) prop { p.required = false; return p }

func unplayed(p prop) prop { p.unplayed, p.required = true, false; return p }

// allOptions are those of a VM's configuration, the numbered ones by each of their names.
func allOptions() schema {
	all := options.with()
	for prefix, family := range numbered {
		for _, name := range each(prefix) {
			all[name] = family.prop
		}
	}
	return all
}

// each is the names of a numbered option.
func each(prefix string) []string {
	names := make([]string, numbered[prefix].times)
	for i := range names {
		names[i] = prefix + strconv.Itoa(i)
	}
	return names
}

// driveOptions are the names that a drive can have, in Proxmox's order.
func driveOptions() []string {
	return slices.Concat(each("ide"), each("scsi"), each("virtio"), each("sata"), each("efidisk"), each("tpmstate"))
}

// verify holds a call's parameters to its schema.
func (r *request) verify(call string) error {
	known := callParameters[call]
	params := maps.Clone(r.params)
	for _, part := range strings.Split(call, "/") {
		name, is := strings.CutPrefix(strings.TrimSuffix(part, "}"), "{")
		if !is {
			continue
		}
		value := r.http.PathValue(name)
		// PVE/HTTPServer.pm of pve-manager 8.4.1, rest_handler.
		if params.Has(name) && params.Get(name) != value {
			return invalid(map[string]string{name: "duplicate parameter (already defined in URI) with conflicting values!"})
		}
		params.Set(name, value)
	}
	if err := invalid(known.mistakes(params)); err != nil {
		return err
	}
	if pool := r.params.Get("pool"); pool != "" { // there are none: check_pool_exist of pve-access-control
		return &failure{code: http.StatusForbidden, message: fmt.Sprintf("Permission check failed (pool '%s' does not exist)", pool)}
	}
	if name := known.unplayedIn(r.params); name != "" {
		return internal("the simulated Proxmox does not play the parameter '%s'", name)
	}
	return nil
}
