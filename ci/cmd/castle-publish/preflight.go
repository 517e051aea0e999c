package main

import (
	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/cmd/cli"
	"tazlab.net/castle/ci/publish"
)

func newPreflightCommand() *cobra.Command {
	var manifest manifestFlags
	var options publish.Options
	var commitFile string
	command := &cobra.Command{
		Use:   "preflight",
		Short: "Refuse what the update of the manifest would refuse; change nothing",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			commit, err := readCommit(commitFile)
			if err != nil {
				return err
			}
			stop, err := manifest.start(cmd.Context())
			if err != nil {
				return err
			}
			defer stop()
			options.Commit, options.Image, options.Repository, options.Update = commit.Commit, manifest.image, manifest.repository, manifest.update
			options.DryRun = manifest.update.DryRun
			return publish.Check(cmd.Context(), options)
		},
	}
	manifest.add(command)
	addCommitFlags(command, &manifest.update)
	addPullRequestFlags(command, &options.PullRequest)
	command.Flags().StringVar(&commitFile, "commit", "", "commit.json")
	command.Flags().StringVar(&options.TagPrefix, "tag-prefix", "", "what stands before the SHA in the tag")
	cli.Require(command, "commit")
	return command
}
