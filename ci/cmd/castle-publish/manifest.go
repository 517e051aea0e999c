package main

import (
	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/cmd/cli"
	"tazlab.net/castle/ci/publish/gitops"
	"tazlab.net/castle/ci/publish/history"
	"tazlab.net/castle/ci/publish/rollback"
)

func newRollbackCommand() *cobra.Command {
	var manifest manifestFlags
	var options rollback.Options
	var result resultFlags
	command := &cobra.Command{
		Use:   "rollback",
		Short: "Point the manifest at an image that was published before",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			stop, err := manifest.start(cmd.Context())
			if err != nil {
				return err
			}
			defer stop()
			options.Image, options.Repository, options.Update = manifest.image, manifest.repository, manifest.update
			options.Registry.Password = cli.Secret(registryPasswordVariable)
			options.Update.Patience = options.Registry.RetryFor
			done, err := rollback.Run(cmd.Context(), options)
			if err != nil {
				return err
			}
			return result.print(cmd, done)
		},
	}
	manifest.add(command)
	addCommitFlags(command, &manifest.update)
	addPullRequestFlags(command, &options.PullRequest)
	command.Flags().StringVar(&options.To, "to", "", "the source commit to go back to, one of its rebuilds (1a2b3c4-r2), or a tag")
	cli.Require(command, "to")
	addRegistryFlags(command, &options.Registry)
	result.add(command)
	return command
}

func newHistoryCommand() *cobra.Command {
	var manifest manifestFlags
	var format cli.Format
	var limit int
	command := &cobra.Command{
		Use:   "history",
		Short: "List what was published when",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			stop, err := manifest.start(cmd.Context())
			if err != nil {
				return err
			}
			defer stop()
			entries, err := gitops.History(cmd.Context(), manifest.repository, manifest.update.Path, manifest.update.Selector, limit)
			if err != nil {
				return err
			}
			return format.Print(cmd, history.List(entries))
		},
	}
	manifest.add(command)
	command.Flags().IntVar(&limit, "limit", 20, "how many entries; 0 means all")
	format.Add(command)
	format.AddFile(command)
	return command
}
