//go:build linux

package main

import (
	"encoding/json"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/sandbox/profile"
)

func newMixCommand() *cobra.Command {
	var folder string
	var seed uint64
	command := &cobra.Command{
		Use:   "mix",
		Short: "Choose faults at random, and say in JSON what must happen to whoever meets them",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			cluster, err := config.Load(folder)
			if err != nil {
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(profile.NewMix(seed, cluster))
		},
	}
	command.Flags().StringVar(&folder, "cluster", "", "the folder with cluster.yaml")
	command.Flags().Uint64Var(&seed, "seed", 1, "the same seed gives the same faults")
	if err := command.MarkFlagRequired("cluster"); err != nil {
		panic(err)
	}
	return command
}
