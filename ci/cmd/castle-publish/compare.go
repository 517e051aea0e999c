package main

import (
	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/cmd/cli"
	"tazlab.net/castle/ci/publish/site/sitediff"
)

func newCompareCommand() *cobra.Command {
	var format cli.Format
	var first, second string
	command := &cobra.Command{
		Use:   "compare",
		Short: "List what differs between two builds of a site, and why",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, err := sitediff.Compare(cmd.Context(), first, second)
			if err != nil {
				return err
			}
			return format.PrintFindings(cmd, report, report.Differing > 0)
		},
	}
	command.Flags().StringVar(&first, "first", "", "the folder of one build")
	command.Flags().StringVar(&second, "second", "", "the folder of the other")
	format.Add(command)
	cli.Require(command, "first", "second")
	return command
}
