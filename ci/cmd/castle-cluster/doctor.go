package main

import (
	"context"
	"os"
	"time"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/cluster/doctor"
	"tazlab.net/castle/ci/cluster/preflight"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cmd/cli"
	"tazlab.net/castle/ci/publish/imagepush"
)

// registryPasswordVariable is the variable of the environment that holds the password that publishing pushes images with.
const registryPasswordVariable = "CASTLE_REGISTRY_PASSWORD"

func (c *clusterFlags) doctor() *cobra.Command {
	var format cli.Format
	var asked preflight.Asked
	// A person waits, and asks again where a registry was in a mood.
	registry := imagepush.Access{Timeout: 3500 * time.Millisecond, Attempt: 3 * time.Second, Tries: 2}
	command := c.on("doctor", "Look whether the cluster can be created, and what is wrong with what it stands on", func(cmd *cobra.Command, on *run.Cluster) error {
		asked.PushToken, registry.Password = os.Getenv(doctor.PushTokenVariable), cli.Secret(registryPasswordVariable)
		redact.Add(asked.PushToken, registry.Password)
		if registry.Password == "" {
			registry.Username = "" // castle.yaml knows the user also where nobody logs in
		}
		asked.Anonymous = registry.Password == ""
		asked.MayPush = func(ctx context.Context, image string) error { return imagepush.Ask(ctx, registry, image) }
		report, err := doctor.Execute(cmd.Context(), on, asked)
		if err != nil {
			return err
		}
		return format.PrintFindings(cmd, report, report.Failed > 0)
	})
	command.Long = `Look whether the cluster can be created, and what is wrong with what it stands on:
the engine and its disk, programs, secrets, Proxmox's certificate, token and
privileges, hosts, storage, template, VM ids, addresses, names, clocks, the GitOps
repository, the images' registries and the store of the states. All rows are looked
at at the same time, and nothing is changed. The exit status is 1 where one has
failed; a warning fails nothing.

` + doctor.PushTokenVariable + ` in the environment is the token that publish-blog pushes with,
` + registryPasswordVariable + ` the password or token for the images' registry.`
	flags := command.Flags()
	flags.StringVar(&asked.Engine, "engine", "", "the version of the Dagger engine that runs this, such as v0.19.10")
	flags.StringVar(&asked.MadeFor, "made-for", "", "the version that castle was made for")
	flags.StringArrayVar(&asked.Images, "image", nil, "the repository of an image that is published from here; several times")
	flags.StringVar(&registry.Username, "registry-username", "", "the user name for its registry")
	flags.StringArrayVar(&registry.PlainHTTP, "plain-http", nil, "a registry that speaks HTTP (registry:5000)")
	format.Add(command)
	return command
}
