//go:build linux

package main

import (
	"errors"
	"fmt"
	"net/netip"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/sandbox/talosnodes"
)

func newNodesCommand() *cobra.Command {
	var made madeOf
	var cluster string
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
			described, err := config.Load(cluster)
			if err != nil {
				return err
			}
			options := made.options
			options.Kubernetes = described.Kubernetes.Version
			options.Address = netip.PrefixFrom(described.Network.Gateway, described.Network.Subnet.Bits())
			if made.components != (talosnodes.Components{}) {
				options.Components = &made.components
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
	flags.StringVar(&made.options.Dir, "dir", "", "the folder that holds the nodes between runs")
	flags.StringVar(&made.options.Etcd, "etcd", "", "the program etcd")
	flags.StringVar(&made.components.ControlPlane, "kubernetes", "", "the folder that castle tool kubernetes prints")
	always, kubernetes := made.add(flags)
	command.MarkFlagsRequiredTogether(append(kubernetes, "kubernetes")...)
	for _, flag := range append(always, "cluster", "dir", "etcd") {
		if err := command.MarkFlagRequired(flag); err != nil {
			panic(err)
		}
	}
	return command
}
