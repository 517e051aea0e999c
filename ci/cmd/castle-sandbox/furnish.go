//go:build linux

package main

import (
	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/sandbox/furnish"
)

func newFurnishCommand() *cobra.Command {
	var folder string
	command := &cobra.Command{
		Use:   "furnish",
		Short: "Make the secrets of a new sandbox, beside its cluster.yaml",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return furnish.Execute(folder) },
	}
	command.Flags().StringVar(&folder, "cluster", "", "the folder with cluster.yaml")
	if err := command.MarkFlagRequired("cluster"); err != nil {
		panic(err)
	}
	return command
}
