//go:build linux

package main

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/cluster/description"
	"tazlab.net/castle/ci/sandbox/talosnodes"
)

func newNodesCommand() *cobra.Command {
	var options talosnodes.Options
	var components talosnodes.Components
	var cluster string
	folders := []struct {
		flag string
		of   *string
	}{
		{"kubernetes", &components.ControlPlane}, {"kubelet", &components.Kubelet}, {"coredns", &components.CoreDNS},
		{"flannel", &components.Flannel}, {"flannel-cni", &components.FlannelCNI},
	}
	command := &cobra.Command{
		Use:   "nodes",
		Short: "Start real Talos nodes in maintenance mode, and keep them until interrupted",
		Long: `Start a real Talos node for each node of a description, and keep them until
interrupted, in Talos's container mode. They run etcd and no Kubernetes, unless --kubelet
is there and what belongs to it. What they hold outlives the call. It needs root, and
namespaces of its own:

  ` + talosnodes.Unshare + ` castle-sandbox nodes …

Who works on the nodes enters these namespaces (nsenter --target PID --net).`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			described, err := description.Load(cluster)
			if err != nil {
				return err
			}
			options.Kubernetes = described.Kubernetes.Version
			options.Address = netip.PrefixFrom(described.Network.Gateway, described.Network.Subnet.Bits())
			if components != (talosnodes.Components{}) {
				options.Components = &components
			}
			world, err := talosnodes.Open(options)
			if err != nil {
				return err
			}
			for _, node := range described.Nodes {
				if err := world.Start(node.Name, node.Address); err != nil {
					return errors.Join(err, world.Close())
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s is on at %s; its console is %s\n", node.Name, node.Address, world.Console(node.Name))
			}
			<-cmd.Context().Done()
			return world.Close()
		},
	}
	flags := command.Flags()
	flags.StringVar(&cluster, "cluster", "", "the folder with cluster.yaml")
	flags.StringVar(&options.Dir, "dir", "", "the folder that holds the nodes between runs")
	flags.StringVar(&options.Talos, "talos", "", "the folder that castle tool talos prints")
	flags.StringVar(&options.Containerd, "containerd", "", "the folder that castle tool containerd prints")
	flags.StringVar(&options.Etcd, "etcd", "", "the program etcd")
	flags.StringVar(&options.Node, "node", "", "the program castle-node")
	var together []string
	for _, folder := range folders {
		flags.StringVar(folder.of, folder.flag, "", "the folder that castle tool "+folder.flag+" prints")
		together = append(together, folder.flag)
	}
	command.MarkFlagsRequiredTogether(together...)
	for _, flag := range []string{"cluster", "dir", "talos", "containerd", "etcd", "node"} {
		if err := command.MarkFlagRequired(flag); err != nil {
			panic(err)
		}
	}
	return command
}
