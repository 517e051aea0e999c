package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/layers/postrender"
	"tazlab.net/castle/ci/cmd/cli"
)

// newPostrenderCommand is called by Helm, with the environment that create gives the layers.
func newPostrenderCommand() *cobra.Command {
	return cli.Hidden(&cobra.Command{
		Use:       "postrender CHART",
		Short:     "Change a chart's manifests, from standard input to standard output, where it has no value for that",
		Args:      cobra.ExactArgs(1),
		ValidArgs: postrender.Charts(),
		Long:      "Charts: " + strings.Join(postrender.Charts(), ", "),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := kube.FromEnv(os.Getenv)
			if err != nil {
				return err
			}
			return postrender.Run(cmd.Context(), args[0], postrender.InCluster(client), cmd.InOrStdin(), os.Stdout)
		},
	})
}
