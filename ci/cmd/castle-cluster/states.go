package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/states"
	"tazlab.net/castle/ci/cmd/cli"
)

func (c *clusterFlags) stateList() *cobra.Command {
	var format cli.Format
	command := c.on("state-list", "Show the layers' states, their copies and locks", func(cmd *cobra.Command, on *run.Cluster) error {
		found, err := states.List(cmd.Context(), on)
		if err != nil {
			return err
		}
		return format.Print(cmd, found)
	})
	format.Add(command)
	return command
}

func (c *clusterFlags) stateUnlock() *cobra.Command {
	var confirm string
	command := c.on("state-unlock", "Remove a lock in the store of the states whose holder is dead", func(cmd *cobra.Command, on *run.Cluster) error {
		return tell(cmd)(states.Unlock(cmd.Context(), on, confirm))
	})
	command.Flags().StringVar(&confirm, "confirm", "", "the lock's ID, as the refused command or state-list tells it")
	cli.Require(command, "confirm")
	return command
}

func (c *clusterFlags) stateRestore() *cobra.Command {
	var layer, at, confirm string
	command := c.on("state-restore", "Go back to a copy of a layer's state", func(cmd *cobra.Command, on *run.Cluster) error {
		return tell(cmd)(states.Restore(cmd.Context(), on, layer, at, confirm))
	})
	command.Flags().StringVar(&layer, "layer", "", "the layer, such as platform")
	command.Flags().StringVar(&at, "copy-time", "", "the copy, by its time as state-list shows it")
	command.Flags().StringVar(&confirm, "confirm", "", "the cluster's name")
	cli.Require(command, "layer", "copy-time", "confirm")
	return command
}

// tell prints what was done.
func tell(cmd *cobra.Command) func(string, error) error {
	return func(done string, err error) error {
		if err != nil {
			return err
		}
		_, err = fmt.Fprint(cmd.OutOrStdout(), done)
		return err
	}
}
