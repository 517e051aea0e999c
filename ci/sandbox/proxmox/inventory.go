package proxmox

import (
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"tazlab.net/castle/ci/sandbox/profile"
)

// What a node tells about itself. No VM is refused for want of it.
const (
	release       = "8.4"
	fullVersion   = "8.4.1"
	nodeCPUs      = 32
	nodeMemory    = int64(128) << 30
	nodeRootDisk  = int64(100) << 30
	lowestID      = 100
	highestID     = 999999999
	repositoryID  = "2a5fa54a8503f96d"
	kernelRelease = "6.8.12-10-pve"
)

func (s *Server) version(*request) (any, error) {
	return map[string]any{"version": fullVersion, "release": release, "repoid": repositoryID}, nil
}

func (s *Server) uptime() int64 { return int64(time.Since(s.booted).Seconds()) }

func (n Node) status() string {
	if n.Offline {
		return "offline"
	}
	return "online"
}

func (s *Server) describeNode(n Node) map[string]any {
	shown := map[string]any{"id": "node/" + n.Name, "node": n.Name, "type": "node", "status": n.status(), "level": ""}
	if !n.Offline {
		maps.Copy(shown, map[string]any{
			"cpu": 0.02, "maxcpu": nodeCPUs, "mem": nodeMemory / 8, "maxmem": nodeMemory,
			"disk": nodeRootDisk / 8, "maxdisk": nodeRootDisk, "uptime": s.uptime(),
		})
	}
	return shown
}

func (s *Server) nodeList(*request) (any, error) {
	list := []map[string]any{}
	for _, n := range s.nodes {
		list = append(list, s.describeNode(n))
	}
	return list, nil
}

func (s *Server) nodeStatus(*request) (any, error) {
	return map[string]any{
		"pveversion": "pve-manager/" + fullVersion + "/" + repositoryID, "kversion": "Linux " + kernelRelease,
		"cpu": 0.02, "wait": 0, "idle": 0, "uptime": s.uptime(), "loadavg": []string{"0.08", "0.06", "0.01"},
		"memory":  map[string]int64{"total": nodeMemory, "used": nodeMemory / 8, "free": nodeMemory / 8 * 7},
		"swap":    map[string]int64{"total": 0, "used": 0, "free": 0},
		"rootfs":  map[string]int64{"total": nodeRootDisk, "used": nodeRootDisk / 8, "free": nodeRootDisk / 8 * 7, "avail": nodeRootDisk / 8 * 7},
		"ksm":     map[string]int64{"shared": 0},
		"cpuinfo": map[string]any{"cpus": nodeCPUs, "cores": nodeCPUs, "sockets": 1, "mhz": "3000.000", "model": "Common KVM processor", "hvm": "1", "flags": "", "user_hz": 100},
	}, nil
}

func (s *Server) clusterStatus(*request) (any, error) {
	list := []map[string]any{}
	if len(s.nodes) > 1 {
		list = append(list, map[string]any{
			"type": "cluster", "id": "cluster", "name": "cluster", "nodes": len(s.nodes), "quorate": 1, "version": len(s.nodes),
		})
	}
	for i, n := range s.nodes {
		shown := map[string]any{
			"type": "node", "id": "node/" + n.Name, "name": n.Name, "nodeid": i, "online": number(!n.Offline), "local": number(i == 0), "level": "",
		}
		if n.Address.IsValid() {
			shown["ip"] = n.Address.String()
		}
		list = append(list, shown)
	}
	return list, nil
}

// resources are all or those of one type: vm, node, storage.
func (s *Server) resources(r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	wanted := r.params.Get("type")
	list := []map[string]any{}
	// What the caller must not see is left out, silently: PVE/API2/Cluster.pm of pve-manager 8.4.
	if wanted == "" || wanted == "vm" {
		for _, id := range s.guestIDs() {
			if s.acl.has(vmPath(id), "VM.Audit") {
				list = append(list, s.guestResource(s.state.Guests[id]))
			}
		}
	}
	if wanted == "" || wanted == "node" {
		for _, n := range s.nodes {
			list = append(list, s.describeNode(n))
		}
	}
	if wanted == "" || wanted == "storage" {
		for _, n := range s.nodes {
			for _, storage := range s.storages {
				if s.acl.has("/storage/"+storage.ID, "Datastore.Audit") {
					list = append(list, s.storageResource(n, storage))
				}
			}
		}
	}
	return list, nil
}

// guestResource is a VM among the cluster's resources; s.mu is held.
func (s *Server) guestResource(g *guest) map[string]any {
	shown := s.describe(g)
	shown["maxcpu"] = shown["cpus"]
	delete(shown, "cpus")
	delete(shown, "pid")
	shown["id"], shown["type"], shown["node"] = "qemu/"+strconv.Itoa(g.ID), "qemu", g.Node
	shown["template"] = number(g.template())
	return shown
}

// nextID is the lowest free id, as a text, or the asked one if it is free.
func (s *Server) nextID(r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if asked := r.params.Get("vmid"); asked != "" {
		id, err := strconv.Atoi(asked)
		if err != nil {
			return nil, err
		}
		if _, taken := s.state.Guests[id]; taken {
			return nil, invalid(map[string]string{"vmid": "VM " + asked + " already exists"})
		}
		return asked, nil
	}
	for id := lowestID; id <= highestID; id++ {
		if _, taken := s.state.Guests[id]; !taken {
			return strconv.Itoa(id), nil
		}
	}
	return nil, internal("unable to get any free VMID in range [%d, %d]", lowestID, highestID)
}

// fullRest is what is free of a storage that is full.
const fullRest = int64(1) << 30

// used is how much of a storage its volumes take; s.mu is held.
func (s *Server) used(storage Storage) int64 {
	if s.profile.Faults.Is(profile.StorageFull, storage.ID) {
		return storage.Bytes - fullRest
	}
	var sum int64
	for id, v := range s.state.Volumes {
		if strings.HasPrefix(id, storage.ID+":") {
			sum += v.Bytes
		}
	}
	return sum
}

func (s *Server) storageResource(n Node, storage Storage) map[string]any {
	return map[string]any{
		"id": "storage/" + n.Name + "/" + storage.ID, "type": "storage", "storage": storage.ID, "node": n.Name,
		"status": "available", "content": storage.Content, "plugintype": storage.Type, "shared": number(storage.Shared),
		"disk": s.used(storage), "maxdisk": storage.Bytes,
	}
}

// describeStorage is a storage of a node; s.mu is held.
func (s *Server) describeStorage(storage Storage) map[string]any {
	used := s.used(storage)
	return map[string]any{
		"storage": storage.ID, "type": storage.Type, "content": storage.Content, "shared": number(storage.Shared),
		"active": 1, "enabled": 1, "total": storage.Bytes, "used": used, "avail": max(0, storage.Bytes-used),
		"used_fraction": float64(used) / float64(max(1, storage.Bytes)),
	}
}

func (s *Server) storageList(r *request) (any, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []map[string]any{}
	for _, storage := range s.storages {
		if !s.acl.hasAny("/storage/"+storage.ID, "Datastore.Audit", "Datastore.AllocateSpace") {
			continue // pve-storage, PVE/API2/Storage/Status.pm and Config.pm
		}
		shown := s.describeStorage(storage)
		if r.http.PathValue("node") == "" { // the cluster's configuration, no node's status
			shown = map[string]any{"storage": storage.ID, "type": storage.Type, "content": storage.Content, "shared": number(storage.Shared)}
		}
		list = append(list, shown)
	}
	return list, nil
}

func (s *Server) storageStatus(r *request) (any, error) {
	storage, err := s.storage(r.http.PathValue("storage"))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.describeStorage(storage), nil
}

// mayUse is check_volume_access of pve-storage 8.3.6, src/PVE/Storage.pm, for a disk and for no VM.
func (s *Server) mayUse(storage string, v *volume) bool {
	on := "/storage/" + storage
	return s.acl.has(on, "Datastore.Allocate") || s.acl.has(on, "Datastore.Audit") && s.acl.has(vmPath(v.Owner), "VM.Config.Disk")
}

// contentList leaves out what the caller may not use, silently: src/PVE/API2/Storage/Content.pm of pve-storage 8.3.6.
func (s *Server) contentList(r *request) (any, error) {
	storage, err := s.storage(r.http.PathValue("storage"))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(s.state.Volumes)) {
		v := s.state.Volumes[id]
		if owner := r.params.Get("vmid"); !strings.HasPrefix(id, storage.ID+":") || owner != "" && owner != strconv.Itoa(v.Owner) || !s.mayUse(storage.ID, v) {
			continue
		}
		if kind := r.params.Get("content"); kind == "" || kind == "images" {
			list = append(list, map[string]any{"volid": id, "content": "images", "format": v.Format, "size": v.Bytes, "vmid": v.Owner})
		}
	}
	return list, nil
}

func (s *Server) contentGet(r *request) (any, error) {
	storage, err := s.storage(r.http.PathValue("storage"))
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	id := r.http.PathValue("volume")
	if !strings.HasPrefix(id, storage.ID+":") {
		id = storage.ID + ":" + id
	}
	v, exists := s.state.Volumes[id]
	if !exists {
		return nil, internal("volume '%s' does not exist", id)
	}
	path := "/dev/pve/"
	if storage.Type == "dir" {
		path = "/var/lib/vz/images/"
	}
	_, name, _ := strings.Cut(id, ":")
	return map[string]any{"path": path + name, "format": v.Format, "size": v.Bytes, "used": v.Bytes}, nil
}

// bridgeList leaves out what the caller must not see: PVE/API2/Network.pm of pve-manager 8.4.
func (s *Server) bridgeList(*request) (any, error) {
	list := []map[string]any{}
	for _, bridge := range s.bridges {
		if !s.acl.hasAny("/sdn/zones/localnetwork/"+bridge, "SDN.Audit", "SDN.Use") {
			continue
		}
		list = append(list, map[string]any{"iface": bridge, "type": "bridge", "active": 1, "autostart": 1, "method": "static"})
	}
	return list, nil
}

// poolList is empty: there are no pools here, and who may see none is told of none (PVE/API2/Pool.pm of pve-manager 8.4, index).
func (s *Server) poolList(r *request) (any, error) {
	if pool := r.params.Get("poolid"); pool != "" {
		return nil, internal("pool '%s' does not exist", pool)
	}
	return []map[string]any{}, nil
}
