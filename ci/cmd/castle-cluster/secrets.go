package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/secretadmin"
	"tazlab.net/castle/ci/cmd/cli"
)

func (c *clusterFlags) secretsInit() *cobra.Command {
	var out string
	command := c.on("secrets-init", "Make the PKI of a cluster without Infisical, as a SOPS file", func(cmd *cobra.Command, on *run.Cluster) error {
		return tell(cmd)(secretadmin.Begin(on, out))
	})
	command.Flags().StringVar(&out, "out", "", "the folder to write the file to")
	cli.Require(command, "out")
	return command
}

// secretsLook makes a command that shows what the sources hold.
func (c *clusterFlags) secretsLook(use, short string, look func(context.Context, *run.Cluster) (*secretadmin.Listing, error)) *cobra.Command {
	var format cli.Format
	command := c.on(use, short, func(cmd *cobra.Command, on *run.Cluster) error {
		found, err := look(cmd.Context(), on)
		if err != nil {
			return err
		}
		return format.Print(cmd, found)
	})
	format.Add(command)
	return command
}

func (c *clusterFlags) secretsAgeKey() *cobra.Command {
	return c.sealed("secrets-age-key", "Make an age key, printed sealed", func(context.Context, *run.Cluster) ([]byte, error) { return secretadmin.NewKey() })
}

func (c *clusterFlags) secretsRotateAge() *cobra.Command {
	var rotation secretadmin.Rotation
	command := c.on("secrets-rotate-age", "Encrypt every SOPS file of the cluster for another age key", func(cmd *cobra.Command, on *run.Cluster) error {
		rotation.Key = os.Getenv(secretadmin.NewKeyVariable)
		return tell(cmd)(secretadmin.RotateAge(on, rotation))
	})
	command.Flags().StringVar(&rotation.Recipient, "new-recipient", "", "the new key's public part, age1…, where the key itself is not in "+secretadmin.NewKeyVariable)
	command.Flags().StringVar(&rotation.Out, "out", "", "the folder to write the files to; the cluster's own replaces them")
	cli.Require(command, "out")
	return command
}
