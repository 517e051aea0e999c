package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/base/findings"
	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/cmd/cli"
	"tazlab.net/castle/ci/publish/site/sitecheck"
	"tazlab.net/castle/ci/publish/site/siteheaders"
)

func newCheckCommand() *cobra.Command {
	var options sitecheck.Options
	var format cli.Format
	var baseline, writeBaseline, out string
	var reportOnly bool
	var headers siteheaders.Mode
	command := &cobra.Command{
		Use:   "check",
		Short: "Look for broken links, missing translations, invalid HTML and foreign requests",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			options.Strict = headers == siteheaders.Strict
			if baseline != "" {
				if options.Baseline, err = findings.ReadBaseline(baseline); err != nil {
					return err
				}
			}
			report, err := sitecheck.Check(cmd.Context(), options)
			if err != nil {
				return err
			}
			if writeBaseline != "" {
				if err := report.Baseline().Write(writeBaseline); err != nil {
					return fmt.Errorf("write the baseline: %w", err)
				}
			}
			if out != "" {
				if err := writeReport(out, report); err != nil {
					return err
				}
			}
			return format.PrintFindings(cmd, report, report.Errors > 0 && writeBaseline == "" && !reportOnly)
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.Dir, "site", "", "the built site")
	flags.StringVar(&options.BaseURL, "base-url", "",
		"the address that the site is served at, with its path; default: what its home page's canonical link, "+
			"site map or feed says")
	flags.StringArrayVar(&options.Languages, "language", nil, "a language that every page must exist in")
	addHeadersFlag(command, &headers)
	flags.StringArrayVar(&options.Ignore, "ignore", nil,
		"what to leave out: RULE, or RULE:PATTERN where the pattern (with * and ?) matches a cause or a file of the report")
	flags.StringVar(&baseline, "baseline", "", "the file with the findings that are known")
	flags.StringVar(&writeBaseline, "write-baseline", "", "write all findings to this file, as the baseline of later checks; they fail nothing then")
	flags.StringVar(&out, "out", "", "write all findings to this file, as JSON")
	flags.BoolVar(&reportOnly, "report-only", false, "succeed whatever is found")
	format.Add(command)
	cli.Require(command, "site")
	command.MarkFlagsMutuallyExclusive("baseline", "write-baseline")
	return command
}

func writeReport(name string, report sitecheck.Report) error {
	text, err := rendering.JSON(report)
	if err != nil {
		return err
	}
	return os.WriteFile(name, []byte(text), 0o644)
}
