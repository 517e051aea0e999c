//go:build linux

package talosnodes

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/siderolabs/talos/pkg/machinery/constants"

	"tazlab.net/castle/ci/cluster/talos/machineconfig"
	"tazlab.net/castle/ci/sandbox/talos"
	"tazlab.net/castle/ci/sandbox/talosnodes/inside"
)

// Components are what nodes run of Kubernetes: the folders of built recipes.
type Components struct {
	ControlPlane string // kubernetes
	Kubelet      string // kubelet
	CoreDNS      string // coredns
	Flannel      string // flannel
	FlannelCNI   string // flannel-cni
}

// pluginFolder is where Debian's package containernetworking-plugins has its programs, and nodePlugins where a node looks for them.
const (
	pluginFolder = "/usr/lib/cni"
	nodePlugins  = "opt/cni/bin"
)

// plugins connect a pod with the network: those that flannel's configuration of Talos 1.13 calls, directly or through another one. A node
// without Kubernetes has none.
func (c *Components) plugins() (files, error) {
	if c == nil {
		return nil, nil
	}
	all := files{path.Join(nodePlugins, "flannel"): filepath.Join(c.FlannelCNI, "flannel")}
	for _, plugin := range []string{"bridge", "host-local", "loopback", "portmap"} {
		file := filepath.Join(pluginFolder, plugin)
		if _, err := os.Stat(file); err != nil {
			return nil, fmt.Errorf("%w: apt-get install --no-install-recommends containernetworking-plugins", err)
		}
		all[path.Join(nodePlugins, plugin)] = file
	}
	return all, nil
}

// PageImage is the stand-in for a site, of the program castle-node.
func PageImage(name, node string) Image {
	return image(name, path.Join("usr/local/bin", inside.PageName), node)
}

// Images are those that nodes pull. A node without Kubernetes has a stand-in for the kubelet.
func (o Options) Images() ([]Image, error) {
	etcd := image(constants.EtcdImage+":"+constants.DefaultEtcdVersion, "usr/local/bin/etcd", o.Etcd)
	kubelet := constants.KubeletImage + ":" + o.Kubernetes
	if o.Components == nil {
		return append([]Image{etcd, image(kubelet, strings.TrimPrefix(inside.KubeletProgram, "/"), o.Node)}, o.Pods...), nil
	}
	called, err := found("cp", "iptables", "iptables-restore", "iptables-save", "mount", "nft", "umount")
	modules, noModules := modules()
	if err = errors.Join(err, noModules); err != nil {
		return nil, err
	}
	c := o.Components
	images := []Image{
		etcd,
		image(kubelet, strings.TrimPrefix(inside.KubeletProgram, "/"), filepath.Join(c.Kubelet, "kubelet"), called),
		image(constants.KubeProxyImage+":"+o.Kubernetes, "usr/local/bin/kube-proxy", filepath.Join(c.Kubelet, "kube-proxy"), called),
		image(constants.CoreDNSImage+":"+constants.DefaultCoreDNSVersion, "coredns", filepath.Join(c.CoreDNS, "coredns")),
		image(talos.FlannelImage, "opt/bin/flanneld", filepath.Join(c.Flannel, "flanneld"), called, modules),
		image(machineconfig.PauseImage, inside.PauseName, o.Node),
	}
	for _, name := range []string{constants.KubernetesAPIServerImage, constants.KubernetesControllerManagerImage, constants.KubernetesSchedulerImage} {
		program := path.Base(name)
		images = append(images, image(name+":"+o.Kubernetes, path.Join("usr/local/bin", program), filepath.Join(c.ControlPlane, program)))
	}
	return append(images, o.Pods...), nil
}
