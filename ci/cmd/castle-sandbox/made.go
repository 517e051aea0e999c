//go:build linux

package main

import (
	"github.com/spf13/pflag"

	"tazlab.net/castle/ci/sandbox/talosnodes"
)

// madeOf are the flags that say where what real nodes are made of is.
type madeOf struct {
	options    talosnodes.Options
	components talosnodes.Components
}

// add adds them, and tells by name which each node needs, and which one with Kubernetes needs as well.
func (m *madeOf) add(flags *pflag.FlagSet) (nodes, kubernetes []string) {
	flag := func(list *[]string, of *string, name, usage string) {
		flags.StringVar(of, name, "", usage)
		*list = append(*list, name)
	}
	tool := func(list *[]string, of *string, name string) {
		flag(list, of, name, "the folder that castle tool "+name+" prints")
	}
	flag(&nodes, &m.options.Talos, "talos", "the folder that castle tool talos prints, or an unpacked official image of Talos")
	flag(&nodes, &m.options.Containerd, "containerd", "the folder that castle tool containerd prints; of no use with an official image")
	flag(&nodes, &m.options.Node, "node", "the program castle-node")
	tool(&kubernetes, &m.components.Kubelet, "kubelet")
	tool(&kubernetes, &m.components.CoreDNS, "coredns")
	tool(&kubernetes, &m.components.Flannel, "flannel")
	tool(&kubernetes, &m.components.FlannelCNI, "flannel-cni")
	return nodes, kubernetes
}
