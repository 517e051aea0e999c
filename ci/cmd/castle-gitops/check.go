package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/base/findings"
	"tazlab.net/castle/ci/cmd/cli"
	"tazlab.net/castle/ci/gitops/gitopscheck"
	"tazlab.net/castle/ci/gitops/gitopscheck/dryrun"
)

func newCheckCommand() *cobra.Command {
	var options gitopscheck.Options
	var format cli.Format
	var baseline, writeBaseline, kubeconfig string
	var reportOnly bool
	command := &cobra.Command{
		Use:   "check",
		Short: "Look for what would keep a cluster from getting what the repository says",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if baseline != "" {
				if options.Baseline, err = findings.ReadBaseline(baseline); err != nil {
					return err
				}
			}
			if kubeconfig != "" {
				if options.Cluster, err = dryrun.Connect(kubeconfig); err != nil {
					return err
				}
			}
			report, err := gitopscheck.Check(cmd.Context(), options)
			if err != nil {
				return err
			}
			if writeBaseline != "" {
				if err := report.Baseline().Write(writeBaseline); err != nil {
					return fmt.Errorf("write the baseline: %w", err)
				}
			}
			return format.PrintFindings(cmd, report, report.Errors > 0 && writeBaseline == "" && !reportOnly)
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.Dir, "repository", ".", "the repository's folder")
	flags.StringVar(&options.Path, "path", "", "a folder in it, such as clusters/production: only the Kustomizations there are begun with")
	flags.BoolVar(&options.Lockdown, "lockdown", false, "Flux runs with its multi-tenancy lockdown, as castle installs it: name what fails then")
	flags.StringArrayVar(&options.CRDs, "crds", nil, "a folder with CustomResourceDefinitions that the repository does not have")
	flags.StringArrayVar(&options.Ignore, "ignore", nil,
		"what to leave out: RULE, or RULE:PATTERN where the pattern (with * and ?) matches a cause or a file of the report")
	flags.StringVar(&baseline, "baseline", "", "the file with the findings that are known")
	flags.StringVar(&writeBaseline, "write-baseline", "", "write all findings to this file, as the baseline of later checks; they fail nothing then")
	flags.BoolVar(&reportOnly, "report-only", false, "succeed whatever is found")
	flags.StringVar(&kubeconfig, "kubeconfig", "", "ask the cluster of this kubeconfig what it would say to the objects; nothing is changed there")
	format.Add(command)
	command.MarkFlagsMutuallyExclusive("baseline", "write-baseline")
	return command
}
