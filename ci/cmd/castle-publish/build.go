package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/cmd/cli"
	"tazlab.net/castle/ci/publish/site/hugobuild"
	"tazlab.net/castle/ci/publish/site/hugoversion"
	"tazlab.net/castle/ci/publish/warning"
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
	flags.DurationVar(&options.RetryFor, "retry-for", hugobuild.RetryFor, "how long a download that fails is tried again")
	cli.Require(command, "site", "out", "cache")
	return command
}

func newBuildCommand() *cobra.Command {
	var options hugobuild.Options
	var warningsOut string
	var after bool
	command := &cobra.Command{
		Use:   "build",
		Short: "Build the site with Hugo; say in a line what it lacks",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options.Log = cmd.ErrOrStderr()
			notes, err := hugobuild.Build(cmd.Context(), options)
			if err != nil || warningsOut == "" {
				return err
			}
			if !after {
				missed, err := hugobuild.MissedAfterBuild(options.Site, options.Out)
				if err != nil {
					return err
				}
				notes = append(notes, missed)
			}
			return writeWarnings(warningsOut, notes...)
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.Site, "site", "", "the site's folder")
	flags.StringVar(&options.Out, "out", "", "the folder to write to")
	flags.StringVar(&options.Cache, "cache", "", "the folder for Hugo's caches")
	flags.StringVar(&options.BaseURL, "base-url", "", "instead of the configuration's")
	flags.StringVar(&options.From, "hugo-from", hugoversion.Default, "who asks for this version of Hugo")
	flags.BoolVar(&after, "after-build", false, "commands of castle.yaml's afterBuild follow")
	flags.StringVar(&warningsOut, "warnings-out", "", "a file to write to what is worth mending, for publish")
	flags.DurationVar(&options.RetryFor, "retry-for", hugobuild.RetryFor, "how long a download that fails is tried again")
	cli.Require(command, "site", "out", "cache")
	return command
}

func newAfterBuildCommand() *cobra.Command {
	var options hugobuild.AfterOptions
	command := &cobra.Command{
		Use:   "after-build",
		Short: "Run the commands of castle.yaml's afterBuild on a built site, without a network",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options.Log = cmd.ErrOrStderr()
			return hugobuild.After(cmd.Context(), options)
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.Site, "site", "", "the site's folder")
	flags.StringVar(&options.Built, "built", "", "what Hugo built, below it")
	flags.StringArrayVar(&options.Commands, "run", nil, "a command for a shell; several times")
	cli.Require(command, "site", "built", "run")
	return command
}

// writeWarnings writes the warnings with these texts, empty ones left out.
func writeWarnings(name string, texts ...string) error {
	var said []warning.Warning
	for _, text := range texts {
		if text != "" {
			said = append(said, warning.Warning{Text: text})
		}
	}
	data, err := json.Marshal(said)
	if err != nil {
		return err
	}
	return os.WriteFile(name, data, 0o644)
}

func readWarnings(name string) (warnings []warning.Warning, err error) {
	if name == "" {
		return nil, nil
	}
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read the build's warnings: %w", err)
	}
	if err := json.Unmarshal(data, &warnings); err != nil {
		return nil, fmt.Errorf("%s is not what castle-publish build writes: %w", name, err)
	}
	return warnings, nil
}
