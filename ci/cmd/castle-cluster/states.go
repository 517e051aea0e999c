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

func (c *clusterFlags) stateShow() *cobra.Command {
	var format cli.Format
	var layer string
	command := c.on("state-show", "Show what a layer's state holds, without values", func(cmd *cobra.Command, on *run.Cluster) error {
		shown, err := states.Show(cmd.Context(), on, layer)
		if err != nil {
			return err
		}
		return format.Print(cmd, shown)
	})
	command.Flags().StringVar(&layer, "layer", "", "the layer, such as platform")
	format.Add(command)
	cli.Require(command, "layer")
	return command
}

func (c *clusterFlags) stateExport() *cobra.Command {
	var out string
	var recipients []string
	command := c.on("state-export", "Write all states to an archive that the age key opens", func(cmd *cobra.Command, on *run.Cluster) error {
		return tell(cmd)(states.Export(cmd.Context(), on, out, recipients))
	})
	command.Flags().StringVar(&out, "out", "", "the file to write")
	command.Flags().StringArrayVar(&recipients, "recipient", nil, "the public key (age1…) of somebody else who may open it; several times")
	cli.Require(command, "out")
	return command
}

func (c *clusterFlags) stateImport() *cobra.Command {
	var archive, confirm string
	var replace bool
	command := c.on("state-import", "Take in the states of an archive", func(cmd *cobra.Command, on *run.Cluster) error {
		return tell(cmd)(states.Import(cmd.Context(), on, archive, replace, confirm))
	})
	command.Flags().StringVar(&archive, "archive", "", "the archive that state-export wrote")
	command.Flags().BoolVar(&replace, "replace", false, "replace states that differ; they become copies")
	command.Flags().StringVar(&confirm, "confirm", "", "the cluster's name")
	cli.Require(command, "archive", "confirm")
	return command
}

func (c *clusterFlags) stateMigrate() *cobra.Command {
	var from, confirm string
	command := c.on("state-migrate", "Move the states to where cluster.yaml has them now", func(cmd *cobra.Command, on *run.Cluster) error {
		return tell(cmd)(states.Migrate(cmd.Context(), on, from, confirm))
	})
	command.Flags().StringVar(&from, "from", "", "where they are: local, or s3://BUCKET?endpoint=URL&region=NAME")
	command.Flags().StringVar(&confirm, "confirm", "", "the cluster's name")
	cli.Require(command, "from", "confirm")
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
