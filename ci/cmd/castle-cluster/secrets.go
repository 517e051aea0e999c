package main

import (
	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/sources"
	"tazlab.net/castle/ci/cmd/cli"
)

func (c *clusterFlags) secretsInit() *cobra.Command {
	var out string
	command := c.on("secrets-init", "Make the PKI of a cluster without Infisical, as a SOPS file", func(cmd *cobra.Command, on *run.Cluster) error {
		return tell(cmd)(sources.Begin(on, out))
	})
	command.Flags().StringVar(&out, "out", "", "the folder to write the file to")
	cli.Require(command, "out")
	return command
}
