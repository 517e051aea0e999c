//go:build linux

package world

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"tazlab.net/castle/ci/sandbox/kube"
	"tazlab.net/castle/ci/sandbox/proxmox"
	"tazlab.net/castle/ci/sandbox/talos"
)

// machines are the VMs of the simulated Proxmox: each one that has power is a simulated Talos machine.
type machines struct {
	fleet *talos.Fleet
	plane *kube.Plane
	log   *slog.Logger
	bare  bool // nobody made them

	mutex sync.Mutex
	vms   map[int]proxmox.VM // that were powered on
}

var _ proxmox.Machines = (*machines)(nil)

func (m *machines) PowerOn(vm proxmox.VM) {
	m.mutex.Lock()
	if m.vms == nil {
		m.vms = map[int]proxmox.VM{}
	}
	m.vms[vm.ID] = vm
	m.mutex.Unlock()
	machine := talos.VM{
		ID: vm.ID, Name: vm.Name, Host: vm.Node, Address: vm.Address, Gateway: vm.Gateway, DNS: vm.DNS,
		Cores: vm.Cores, MemoryMiB: vm.MemoryMiB, MAC: vm.MAC, UUID: vm.UUID, Tags: vm.Tags, Bare: m.bare,
	}
	for _, disk := range vm.Disks {
		machine.Disks = append(machine.Disks, talos.VMDisk{SizeGiB: int(disk.Bytes >> 30)})
	}
	if err := m.fleet.PowerOn(machine); err != nil {
		m.log.Error("power on", "vm", vm.ID, "error", err)
	}
}

func (m *machines) PowerOff(id int) {
	if err := m.fleet.PowerOff(id); err != nil {
		m.log.Error("power off", "vm", id, "error", err)
	}
}

// Removed takes the disk away, and with the last control plane's disk all that etcd held.
func (m *machines) Removed(id int) {
	m.mutex.Lock()
	vm := m.vms[id]
	delete(m.vms, id)
	last := isControlPlane(vm)
	for _, other := range m.vms {
		last = last && !isControlPlane(other)
	}
	m.mutex.Unlock()
	err := m.fleet.Removed(id)
	if vm.Name != "" {
		err = errors.Join(err, m.plane.NodeErased(vm.Name))
	}
	if last {
		err = errors.Join(err, m.plane.Erase())
	}
	if err != nil {
		m.log.Error("remove", "vm", id, "error", err)
	}
}

// wiped takes what a machine held of its cluster away, and with the last control plane's part all that etcd held.
func (m *machines) wiped(hostname string, last bool) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	err := m.plane.NodeErased(hostname)
	if last {
		err = errors.Join(err, m.plane.Erase())
	}
	if err != nil {
		m.log.Error("wipe", "node", hostname, "error", err)
	}
}

// isControlPlane goes by the tag that the platform layer sets.
func isControlPlane(vm proxmox.VM) bool { return slices.Contains(vm.Tags, talos.ControlPlaneRole) }

func (m *machines) Interfaces(id int) ([]proxmox.Interface, bool) {
	var list []proxmox.Interface
	for _, known := range m.fleet.Interfaces(id) {
		list = append(list, proxmox.Interface{Name: known.Name, MAC: known.MAC, Addresses: known.Addresses})
	}
	return list, list != nil
}

// wakeTime is how long machines that were running before a power cut may take to run again.
const wakeTime = 2 * time.Minute

// awake waits until the machines that have a configuration, and the control plane on them, run again, so that a call finds
// the world as the last one left it. A cluster that cannot come up does not keep the world from serving.
func (m *machines) awake(ctx context.Context, running int, hadControlPlane bool) error {
	ctx, cancel := context.WithTimeout(ctx, wakeTime)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for !m.settled(running, hadControlPlane) {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			if errors.Is(ctx.Err(), context.DeadlineExceeded) {
				m.log.Warn("some machines are not up again", "after", wakeTime)
				return nil
			}
			return ctx.Err()
		}
	}
	return nil
}

// settled tells whether no machine is on its way, and the API server runs if it did.
func (m *machines) settled(running int, hadControlPlane bool) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for id := range m.vms {
		if stage := m.fleet.Stage(id); stage != "running" && stage != "maintenance" {
			return false
		}
	}
	return len(m.vms) == running && (running == 0 || !hadControlPlane || m.plane.Admin() != nil)
}

// kubernetes is the plane as the simulated machines see it.
type kubernetes struct {
	plane    *kube.Plane
	applying sync.Mutex // one control plane at a time applies manifests, as Talos has it by a lock in etcd (etcdLock in manifest_apply.go)
}

var _ talos.Cluster = (*kubernetes)(nil)

func (k *kubernetes) ControlPlaneUp(ctx context.Context, node talos.Node, config talos.ControlPlane) error {
	converted, err := convert(config)
	if err != nil {
		return fmt.Errorf("machine configuration of %s: %w", node.Name, err)
	}
	if err := k.plane.ControlPlaneUp(ctx, node.Name, node.Address, converted); err != nil {
		return err
	}
	k.applying.Lock()
	defer k.applying.Unlock()
	return applyManifests(ctx, k.plane.Admin(), config.Manifests)
}

func convert(config talos.ControlPlane) (kube.Config, error) {
	if len(config.PodSubnets) == 0 || len(config.ServiceSubnets) == 0 {
		return kube.Config{}, errors.New("no pod or service subnet")
	}
	vip, err := netip.ParseAddr(config.Endpoint.Hostname())
	pods, podErr := netip.ParsePrefix(config.PodSubnets[0])
	services, serviceErr := netip.ParsePrefix(config.ServiceSubnets[0])
	if err := errors.Join(err, podErr, serviceErr); err != nil {
		return kube.Config{}, err
	}
	return kube.Config{
		PKI: kube.PKI{ClusterCA: config.CA, AggregatorCA: config.AggregatorCA, EtcdCA: config.EtcdCA, ServiceAccountKey: config.ServiceAccountKey},
		VIP: vip, PodSubnet: pods, ServiceSubnet: services, Domain: config.DNSDomain, CertSANs: config.CertSANs,
		SecretboxSecret: config.SecretboxSecret, KubeProxy: config.Config.Cluster().Proxy().Enabled(),
	}, nil
}

func (k *kubernetes) ControlPlaneDown(node talos.Node) { k.plane.ControlPlaneDown(node.Name) }

func (k *kubernetes) NodeUp(_ context.Context, node talos.Node) error {
	k.plane.NodeUp(kube.Node{Name: node.Name, Address: node.Address, PodCNI: true, Shared: node.Shared, Labels: node.Labels, Taints: node.Taints,
		Cores: node.Cores, Memory: node.MemoryMiB})
	return nil
}

func (k *kubernetes) NodeDown(node talos.Node) { k.plane.NodeDown(node.Name) }

func (k *kubernetes) Pull(ctx context.Context, node talos.Node, image string) error {
	return k.plane.Pull(ctx, node.Name, image)
}

func (k *kubernetes) VIP(_ netip.Addr, holder *talos.Node) {
	name := ""
	if holder != nil {
		name = holder.Name
	}
	// An address that cannot be taken is seen by whoever asks there.
	_ = k.plane.VIP(name)
}
