package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/cluster/layers/charts"
	"tazlab.net/castle/ci/cluster/layers/providers"
	"tazlab.net/castle/ci/cmd/cli"
)

func newPinChartsCommand() *cobra.Command {
	var layers, out string
	command := cli.Hidden(&cobra.Command{
		Use:   "pin-charts",
		Short: "Download the layers' charts and write the list of them with their digests",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := charts.Pin(cmd.Context(), layers)
			if err != nil {
				return err
			}
			return os.WriteFile(out, text, 0o644)
		},
	})
	flags := command.Flags()
	flags.StringVar(&layers, "layers", "terragrunt", "the folder with charts.yaml")
	flags.StringVar(&out, "out", "", "the file to write")
	cli.Require(command, "out")
	return command
}

func newPinProvidersCommand() *cobra.Command {
	var layers, tofu, out string
	var platforms []string
	command := cli.Hidden(&cobra.Command{
		Use:   "pin-providers",
		Short: "Write the lock file of all providers that the layers use",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			text, err := providers.Pin(cmd.Context(), tofu, layers, platforms)
			if err != nil {
				return err
			}
			return os.WriteFile(out, text, 0o644)
		},
	})
	flags := command.Flags()
	flags.StringVar(&layers, "layers", "terragrunt", "the folder with root.hcl")
	flags.StringVar(&tofu, "tofu-program", "tofu", "OpenTofu's name or path")
	flags.StringSliceVar(&platforms, "platform", []string{"linux_amd64", "linux_arm64"}, "the platforms of the engines that create runs on")
	flags.StringVar(&out, "out", "", "the file to write")
	cli.Require(command, "out")
	return command
}

func newProvidersCommand() *cobra.Command {
	var layers, tofu, out string
	command := cli.Hidden(&cobra.Command{
		Use:   "providers",
		Short: "Download the layers' providers into a folder",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return providers.Fetch(cmd.Context(), tofu, layers, out) },
	})
	flags := command.Flags()
	flags.StringVar(&layers, "layers", "terragrunt", "the folder with root.hcl")
	flags.StringVar(&tofu, "tofu-program", "tofu", "OpenTofu's name or path")
	flags.StringVar(&out, "out", "", "the folder that gets the providers and their lock file")
	cli.Require(command, "out")
	return command
}

func newChartsCommand() *cobra.Command {
	var layers, tools, out string
	command := cli.Hidden(&cobra.Command{
		Use:   "charts",
		Short: "Put the layers' charts together, each as a folder",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if tools == "" {
				return charts.FetchAll(cmd.Context(), layers, out)
			}
			left, err := charts.ComposeAll(layers, out, func(tool string) (string, error) { return filepath.Join(tools, tool), nil })
			if err == nil && len(left) > 0 {
				_, err = fmt.Fprintf(cmd.ErrOrStderr(), "left out, since only a Helm repository has them: %s\n", strings.Join(left, ", "))
			}
			return err
		},
	})
	flags := command.Flags()
	flags.StringVar(&layers, "layers", "terragrunt", "the folder with charts.yaml")
	flags.StringVar(&tools, "tools", "", "the folder with what the tools' builds keep; without it the charts are downloaded")
	flags.StringVar(&out, "out", "", "the folder to write to")
	cli.Require(command, "out")
	return command
}
