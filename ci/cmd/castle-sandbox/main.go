//go:build linux

// Command castle-sandbox is the proving ground: the world that `--cluster sandbox` is created in. It is a program of its
// own, so that none of its simulators is in the product. This package holds commands and flags only.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/sandbox/profile"
	"tazlab.net/castle/ci/sandbox/world"
)

// init keeps the process's first thread for main. A pod's programs are started by threads that enter the pod's namespaces and end there;
// the first one never ends, and its namespaces are those that others take for the process's: nsenter and /proc would lead into the pod.
func init() { runtime.LockOSThread() }

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newRootCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "castle-sandbox: %v\n", err)
		os.Exit(1)
	}
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{Use: "castle-sandbox", Short: "Run the proving ground", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(newServeCommand(), newMixCommand(), newFurnishCommand(), newNodesCommand())
	return root
}

func newServeCommand() *cobra.Command {
	options := world.Options{Log: os.Stderr}
	var name string
	var scale float64
	var faults []string
	command := &cobra.Command{
		Use:   "serve",
		Short: "Power the world on and serve it until interrupted",
		Long: `Power the world on and serve it until interrupted. It needs a network namespace of
its own, with all capabilities: its addresses and routes are added to it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			parsed, err := profile.ParseFaults(faults)
			if err != nil {
				return err
			}
			if options.Profile, err = profile.New(name, scale, parsed); err != nil {
				return err
			}
			return world.Serve(cmd.Context(), options)
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.Cluster, "cluster", "", "the folder with cluster.yaml and world.yaml")
	flags.StringVar(&options.Dir, "dir", "", "the folder that holds the world between runs")
	flags.StringVar(&options.Binaries, "binaries", "", "the folder with the programs that run for real")
	flags.StringVar(&options.Listen, "listen", ":3128", "where the proxy into the world listens")
	flags.StringVar(&name, "profile", profile.NameHomelab, "how long things take: homelab or none")
	flags.Float64Var(&scale, "time-scale", 1, "what the profile's times are multiplied by")
	flags.StringArrayVar(&faults, "fault", nil, "what goes wrong (name or name=value)")
	for _, flag := range []string{"cluster", "dir", "binaries"} {
		if err := command.MarkFlagRequired(flag); err != nil {
			panic(err)
		}
	}
	return command
}
