package main

import (
	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/wipe"
	"tazlab.net/castle/ci/cmd/cli"
)

func (c *clusterFlags) nuclearWipe() *cobra.Command {
	var format cli.Format
	var options wipe.Options
	command := c.on("nuclear-wipe", "List the cluster's VMs, or confirmed remove them, by Proxmox's API alone", func(cmd *cobra.Command, on *run.Cluster) error {
		report, err := wipe.Execute(cmd.Context(), on, options)
		return printRun(cmd, format, report, err)
	})
	command.Flags().StringVar(&options.Confirm, "confirm", "", "the cluster's name; without it nothing is removed")
	command.Flags().IntSliceVar(&options.Untagged, "include-untagged", nil, "the id of a VM in the cluster's range that goes although it has not the cluster's tag; several times")
	command.Flags().StringVar(&options.Owner, "owner", "", "the id of the states' owner, as the refused call shows it; "+
		"where it cannot be told otherwise that they are this cluster's")
	format.Add(command)
	return command
}
