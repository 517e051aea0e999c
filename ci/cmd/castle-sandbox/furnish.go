//go:build linux

package main

import (
	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/sandbox/furnish"
)

func newFurnishCommand() *cobra.Command {
	var folder string
	var options furnish.Options
	command := &cobra.Command{
		Use:   "furnish",
		Short: "Make the secrets of a new sandbox, beside its cluster.yaml",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return furnish.Execute(folder, options) },
	}
	command.Flags().StringVar(&folder, "cluster", "", "the folder with cluster.yaml")
	command.Flags().BoolVar(&options.EmptyGit, "empty-git", false, "its GitOps repository begins without a commit")
	if err := command.MarkFlagRequired("cluster"); err != nil {
		panic(err)
	}
	return command
}
