package main

import (
	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/cmd/cli"
	"tazlab.net/castle/ci/publish/site/browsercheck"
)

func newBrowseCommand() *cobra.Command {
	var options browsercheck.Options
	var format cli.Format
	command := &cobra.Command{
		Use:   "browse",
		Short: "Open every kind of page of a served site in Chromium; list what its headers break",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, err := browsercheck.Check(cmd.Context(), options)
			if err != nil {
				return err
			}
			return format.PrintFindings(cmd, report, report.Errors() > 0)
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.URL, "url", "", "where the site is served (http://site:8080)")
	flags.StringVar(&options.Dir, "site", "", "the built site, from which pages are chosen")
	flags.StringVar(&options.BaseURL, "base-url", "",
		"the address that the site is built for, below whose path the server has it; default: as for check")
	flags.IntSliceVar(&options.Widths, "width", browsercheck.DefaultWidths, "the window's width in CSS pixels; below 768 a phone's")
	flags.DurationVar(&options.Deadline, "deadline", browsercheck.DefaultDeadline, "for all of them")
	flags.StringVar(&options.Program, "browser", "", "the browser's name or path; default: Chromium by any of its names")
	flags.BoolVar(&options.Offline, "offline", false, "let the browser find no host but the site's")
	flags.StringVar(&options.Screenshots, "screenshots", "", "a folder for a picture of each page at each width")
	format.Add(command)
	cli.Require(command, "url", "site")
	return command
}
