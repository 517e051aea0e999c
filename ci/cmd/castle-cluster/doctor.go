package main

import (
	"os"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/cluster/doctor"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cmd/cli"
)

func (c *clusterFlags) doctor() *cobra.Command {
	var format cli.Format
	command := c.on("doctor", "Look whether the cluster can be created, and what is wrong with what it stands on", func(cmd *cobra.Command, on *run.Cluster) error {
		options := doctor.Options{PushToken: os.Getenv(doctor.PushTokenVariable)}
		redact.Add(options.PushToken)
		report, err := doctor.Execute(cmd.Context(), on, options)
		if err != nil {
			return err
		}
		return format.PrintFindings(cmd, report, report.Failed > 0)
	})
	command.Long = `Look whether the cluster can be created, and what is wrong with what it stands on:
programs, secrets, Proxmox's certificate, token and privileges, hosts, storage,
template, VM ids, addresses, names, clocks, the GitOps repository and the store of
the states. All rows are looked at at the same time, and nothing is changed. The
exit status is 1 where one has failed; a warning fails nothing.

` + doctor.PushTokenVariable + ` in the environment is the token that publish-blog pushes with.`
	format.Add(command)
	return command
}
