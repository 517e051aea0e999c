package main

import (
	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/cmd/cli"
	"tazlab.net/castle/ci/publish/site/hugobuild"
)

func newNodeModulesCommand() *cobra.Command {
	var options hugobuild.PackageOptions
	command := &cobra.Command{
		Use:   "node-modules",
		Short: "Install the npm packages of the site's lock file, if it has one",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options.Log = cmd.ErrOrStderr()
			return hugobuild.Packages(cmd.Context(), options)
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.Site, "site", "", "the site's folder")
	flags.StringVar(&options.Out, "out", "", "the folder that node_modules comes into")
	flags.StringVar(&options.Cache, "cache", "", "the folder for npm's cache")
	cli.Require(command, "site", "out", "cache")
	return command
}

func newBuildCommand() *cobra.Command {
	var options hugobuild.Options
	command := &cobra.Command{
		Use:   "build",
		Short: "Build the site with Hugo; say in a line what it lacks",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options.Log = cmd.ErrOrStderr()
			return hugobuild.Build(cmd.Context(), options)
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.Site, "site", "", "the site's folder")
	flags.StringVar(&options.Out, "out", "", "the folder to write to")
	flags.StringVar(&options.Cache, "cache", "", "the folder for Hugo's caches")
	flags.StringVar(&options.BaseURL, "base-url", "", "instead of the configuration's")
	cli.Require(command, "site", "out", "cache")
	return command
}
