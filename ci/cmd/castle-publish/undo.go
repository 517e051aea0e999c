package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/cmd/cli"
	"tazlab.net/castle/ci/publish/report"
	"tazlab.net/castle/ci/publish/rollback"
)

func newUndoCommand() *cobra.Command {
	var manifest manifestFlags
	var options rollback.Options
	var result resultFlags
	var published string
	command := &cobra.Command{
		Use:   "undo",
		Short: "Point the manifest back at what it named before a publish whose rollout failed",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			data, err := os.ReadFile(published)
			if err != nil {
				return fmt.Errorf("read what was published: %w", err)
			}
			var failed report.Result
			if err := json.Unmarshal(data, &failed); err != nil {
				return fmt.Errorf("%s is not what castle-cluster rollout writes with --outcome: %w", published, err)
			}
			stop, err := manifest.start(cmd.Context())
			if err != nil {
				return err
			}
			defer stop()
			options.Image, options.Repository, options.Update = manifest.image, manifest.repository, manifest.update
			options.Registry.Password = cli.Secret(registryPasswordVariable)
			options.Update.Patience = options.Registry.RetryFor
			options.PullRequest.Wait = 0
			undone, err := rollback.Undo(cmd.Context(), options, failed)
			if err != nil {
				return err
			}
			return result.print(cmd, undone)
		},
	}
	manifest.add(command)
	addCommitFlags(command, &manifest.update)
	addPullRequestFlags(command, &options.PullRequest)
	command.Flags().StringVar(&published, "published", "", "the outcome of the rollout that failed")
	addRegistryFlags(command, &options.Registry)
	result.add(command)
	cli.Require(command, "published")
	return command
}
