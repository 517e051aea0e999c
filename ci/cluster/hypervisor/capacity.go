package hypervisor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/luthermonson/go-proxmox"
)

// Host is a Proxmox node that the description names.
type Host struct {
	Name   string
	Exists bool
	Online bool
}

// Hosts tells which of the described nodes' hosts are there; known are all that Proxmox has.
func (h *Hypervisor) Hosts(ctx context.Context) (list []Host, known []string, err error) {
	nodes, err := h.client.Nodes(ctx)
	if err != nil {
		return nil, nil, fmt.Errorf("ask Proxmox at %s for its nodes: %w", h.cluster.Proxmox.URL, err)
	}
	online := map[string]bool{}
	for _, node := range nodes {
		online[node.Node] = node.Status == "online"
		known = append(known, node.Node)
	}
	slices.Sort(known)
	for _, name := range hosts(h.cluster) {
		on, exists := online[name]
		list = append(list, Host{Name: name, Exists: exists, Online: on})
	}
	return list, known, nil
}

// Storage is the storage of the description on one host.
type Storage struct {
	Host   string
	Exists bool // false also where the token must not see it
	Usable bool // enabled and active there
	Images bool // it takes disks
	Shared bool // by all hosts
	Type   string
	Free   int64 // bytes
}

// Storages are the description's storage on each of the nodes' hosts that is online.
func (h *Hypervisor) Storages(ctx context.Context) ([]Storage, error) {
	there, _, err := h.Hosts(ctx)
	if err != nil {
		return nil, err
	}
	var list []Storage
	for _, host := range there {
		if !host.Online {
			continue
		}
		storages, err := h.storagesOf(ctx, host.Name)
		if err != nil {
			return nil, err
		}
		found := Storage{Host: host.Name}
		for _, storage := range storages {
			if storage.Name == h.cluster.Proxmox.Storage {
				found = Storage{Host: host.Name, Exists: true, Usable: storage.Enabled != 0 && storage.Active != 0, Shared: storage.Shared != 0,
					Images: holdsDisks(storage), Type: storage.Type, Free: int64(storage.Avail)}
			}
		}
		list = append(list, found)
	}
	return list, nil
}

// storagesOf are all storages of a host that the token sees.
func (h *Hypervisor) storagesOf(ctx context.Context, host string) (proxmox.Storages, error) {
	storages, err := new(proxmox.Node).New(h.client, host).Storages(ctx)
	if err != nil {
		return nil, fmt.Errorf("ask Proxmox at %s for the storages of %s: %w", h.cluster.Proxmox.URL, host, err)
	}
	return storages, nil
}

func holdsDisks(storage *proxmox.Storage) bool {
	return slices.Contains(strings.Split(storage.Content, ","), "images")
}

// Disk is a volume that a VM's disk is on.
type Disk struct {
	Volume string // "local-lvm:base-900-disk-0"
	Shared bool   // by all Proxmox nodes
}

// Disks are those of a VM, without CD drives.
func (h *Hypervisor) Disks(ctx context.Context, vm VM) ([]Disk, error) {
	machine, err := h.machine(ctx, vm)
	if err != nil {
		return nil, err
	}
	storages, err := h.storagesOf(ctx, vm.Host)
	if err != nil {
		return nil, err
	}
	var disks []Disk
	config := machine.VirtualMachineConfig
	for _, drives := range []map[string]string{config.SCSIs, config.VirtIOs, config.SATAs, config.IDEs} {
		for _, drive := range drives {
			volume, options, _ := strings.Cut(drive, ",")
			name, _, is := strings.Cut(volume, ":")
			if !is || strings.Contains(options, "media=cdrom") {
				continue
			}
			disks = append(disks, Disk{volume, slices.ContainsFunc(storages, func(s *proxmox.Storage) bool { return s.Name == name && s.Shared != 0 })})
		}
	}
	slices.SortFunc(disks, func(a, b Disk) int { return strings.Compare(a.Volume, b.Volume) })
	return disks, nil
}

// Bridges tells for each of the nodes' hosts that is online whether the description's bridge is there and the token sees it.
func (h *Hypervisor) Bridges(ctx context.Context) (map[string]bool, error) {
	there, _, err := h.Hosts(ctx)
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, host := range there {
		if !host.Online {
			continue
		}
		networks, err := new(proxmox.Node).New(h.client, host.Name).Networks(ctx, "any_bridge")
		if err != nil {
			return nil, fmt.Errorf("ask Proxmox at %s for the bridges of %s: %w", h.cluster.Proxmox.URL, host.Name, err)
		}
		found[host.Name] = slices.ContainsFunc(networks, func(n *proxmox.NodeNetwork) bool { return n.Iface == h.cluster.Proxmox.Bridge })
	}
	return found, nil
}

// Version is Proxmox's own.
func (h *Hypervisor) Version(ctx context.Context) (string, error) {
	version, err := h.client.Version(ctx)
	if err != nil {
		return "", fmt.Errorf("ask Proxmox at %s for its version: %w", h.cluster.Proxmox.URL, err)
	}
	return version.Version, nil
}

// All lists every VM that the token sees, in order of their ids.
func (h *Hypervisor) All(ctx context.Context) ([]VM, error) {
	return h.patientList(ctx, func(int) bool { return true })
}
