package main

import (
	"slices"
	"time"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/cmd/cli"
	"tazlab.net/castle/ci/publish"
	"tazlab.net/castle/ci/publish/report"
)

func newPublishCommand() *cobra.Command {
	var manifest manifestFlags
	var options publish.Options
	var result resultFlags
	var commitFile, headersFile, warningsFile, began string
	var steps []string
	var sign bool
	command := &cobra.Command{
		Use:   "publish",
		Short: "Push the image, then point the manifest at it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if options.Signer, err = signerOf(sign, options.SBOM); err != nil {
				return err
			}
			commit, err := readCommit(commitFile)
			if err != nil {
				return err
			}
			built, err := readWarnings(warningsFile)
			if err != nil {
				return err
			}
			options.Commit, options.Hugo, options.Warnings = commit.Commit, commit.Hugo, slices.Concat(commit.Warnings, built)
			options.Site = commit.Site
			if options.Headers, err = report.ReadHeaders(headersFile); err != nil {
				return err
			}
			for _, text := range steps {
				step, err := report.ParseStep(text)
				if err != nil {
					return err
				}
				options.Steps = append(options.Steps, step)
			}
			if began != "" {
				if options.Began, err = time.Parse(time.RFC3339Nano, began); err != nil {
					return err
				}
			}
			stop, err := manifest.start(cmd.Context())
			if err != nil {
				return err
			}
			defer stop()
			options.Image, options.Repository, options.Update = manifest.image, manifest.repository, manifest.update
			options.DryRun = manifest.update.DryRun
			options.Registry.Password = cli.Secret(registryPasswordVariable)
			options.Update.Patience = options.Registry.RetryFor
			done, err := publish.Run(cmd.Context(), options)
			if err != nil {
				return err
			}
			return result.print(cmd, done)
		},
	}
	manifest.add(command)
	addCommitFlags(command, &manifest.update)
	addPullRequestFlags(command, &options.PullRequest)
	flags := command.Flags()
	flags.StringVar(&commitFile, "commit", "", "commit.json")
	flags.StringVar(&options.Layout, "layout", "", "the image's OCI layout")
	flags.StringVar(&headersFile, "headers-report", "", "the image's headers, for the report")
	flags.StringVar(&warningsFile, "warnings", "", "the build's warnings, for the report")
	flags.BoolVar(&options.Checked, "gitops-checked", false, "castle-publish preflight has looked at the GitOps repository")
	flags.StringVar(&options.TagPrefix, "tag-prefix", "", "what stands before the SHA in the tag")
	flags.BoolVar(&options.Rebuild, "rebuild", false,
		"where the tag is another image, push the next one of its rebuilds: -r2, -r3 and so on behind it")
	addRegistryFlags(command, &options.Registry)
	addSignFlags(command, &sign, &options.SBOM)
	flags.StringVar(&options.Export, "export", "", "the folder of commit.json, for what the SBOM says of the site's Hugo modules and npm packages")
	flags.StringArrayVar(&steps, "step", nil, "a step that is done already, name=duration")
	flags.StringVar(&began, "began", "", "when the run began")
	result.add(command)
	cli.Require(command, "commit", "layout")
	return command
}
