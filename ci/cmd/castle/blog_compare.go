package main

import (
	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/publish/site/sitediff"
)

func newCompareCommand() *cobra.Command {
	var first, second, format string
	command := &cobra.Command{
		Use:   "compare",
		Short: "List what differs between two builds of a site, and why",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, err := sitediff.Compare(cmd.Context(), first, second)
			if err != nil {
				return err
			}
			if err := render(cmd, report, format); err != nil || report.Differing == 0 {
				return err
			}
			return exitError(1)
		},
	}
	command.Flags().StringVar(&first, "first", "", "the folder of one build")
	command.Flags().StringVar(&second, "second", "", "the folder of the other")
	addFormatFlag(command, &format)
	require(command, "first", "second")
	return command
}
