//go:build linux

package world

import (
	"fmt"
	"log/slog"
	"net/netip"
	"path"
	"path/filepath"
	"strings"

	"tazlab.net/castle/ci/cluster/layers/charts"
	"tazlab.net/castle/ci/sandbox/proxmox"
	"tazlab.net/castle/ci/sandbox/talosnodes"
)

// Nodes are what a world's real Talos nodes are made of, beside the world's own programs.
type Nodes struct {
	talosnodes.Options        // all but what Serve knows: Dir, Etcd, Kubernetes, Address and Pods
	Layers             string // the folder with charts.yaml: the images that are installed
	Speaker            string // the program of MetalLB's speaker
}

const (
	// imageSpeaker announces addresses. Simulated nodes have no wire.
	imageSpeaker = "quay.io/metallb/speaker"
	// nobody is the user of official images of controllers that name one.
	nobody = "65534:65534"
)

// Page is the stand-in for a site that was not published yet.
func (n *Nodes) Page() talosnodes.Image { return talosnodes.PageImage("", n.Node) }

// pods are the images of charts.yaml whose programs are here.
func (n *Nodes) pods(binaries string) ([]talosnodes.Image, error) {
	list, err := charts.Charts(n.Layers)
	if err != nil {
		return nil, err
	}
	known := programs(binaries).Images
	var images []talosnodes.Image
	for _, chart := range list {
		for _, wanted := range chart.Images {
			repository, _, _ := strings.Cut(wanted.Name, ":")
			program, user := known[repository], nobody
			if repository == imageSpeaker {
				program, user = n.Speaker, "" // it has raw sockets
			}
			if program != "" {
				at := path.Join("usr/local/bin", path.Base(repository))
				images = append(images, talosnodes.Image{Name: wanted.Name, Start: at, Files: map[string]string{at: program}, User: user})
			}
		}
	}
	return images, nil
}

// serveNodes has a real node for each VM that has power, in place of simulated machines and their Kubernetes.
func (w *world) serveNodes() error {
	if !w.cluster.MakesMachines() {
		return fmt.Errorf("real nodes are the VMs of the simulated Proxmox, and a cluster of platform %s has none", w.cluster.Platform)
	}
	pods, err := w.Nodes.pods(w.Binaries)
	if err != nil {
		return err
	}
	own := programs(w.Binaries)
	options := w.Nodes.Options
	components := *options.Components
	components.ControlPlane = w.Binaries
	options.Components = &components
	options.Dir, options.Etcd, options.Pods = filepath.Join(w.Dir, "talos"), own.Etcd, pods
	options.Kubernetes = w.cluster.Kubernetes.Version
	options.Address = netip.PrefixFrom(w.cluster.Network.Gateway, w.cluster.Network.Subnet.Bits())
	nodes, err := talosnodes.Open(options)
	if err != nil {
		return err
	}
	w.onClose(func() {
		if err := nodes.Close(); err != nil {
			w.log.Error("end the nodes", "error", err)
		}
	})
	host, err := w.openProxmox(realMachines{nodes: nodes, log: w.log})
	if err != nil {
		return err
	}
	host.Resume()
	return w.serveProxmox(host)
}

// realMachines are the VMs of the simulated Proxmox: each one that has power is a real Talos node, at its cloud-init drive's address. It boots
// at once, since it is a container, and what else its VM is described by is nothing to it.
type realMachines struct {
	nodes *talosnodes.World
	log   *slog.Logger
}

var _ proxmox.Machines = realMachines{}

func (m realMachines) PowerOn(vm proxmox.VM) {
	m.told("power on", vm.ID, m.nodes.Start(nodeOf(vm.ID), vm.Address.Addr()))
}

func (m realMachines) PowerOff(id int) { m.told("power off", id, m.nodes.PowerCut(nodeOf(id))) }

// Removed empties a disk.
func (m realMachines) Removed(id int) { m.told("remove", id, m.nodes.Wipe(nodeOf(id))) }

// Interfaces is that no guest agent runs.
func (realMachines) Interfaces(int) ([]proxmox.Interface, bool) { return nil, false }

func (m realMachines) told(what string, vm int, err error) {
	if err != nil {
		m.log.Error(what, "vm", vm, "error", err)
	}
}

// nodeOf is what a machine is called before its configuration names it.
func nodeOf(vm int) string { return fmt.Sprintf("vm-%d", vm) }
