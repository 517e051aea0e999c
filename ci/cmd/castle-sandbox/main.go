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
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"tazlab.net/castle/ci/sandbox/profile"
	"tazlab.net/castle/ci/sandbox/talosnodes"
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

// What VMs may be.
const (
	simulatedNodes = "simulated"
	talosNodes     = "talos"
)

// unset are the flags of these that nobody has set.
func unset(flags *pflag.FlagSet, names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), flags.Changed)
}

func newServeCommand() *cobra.Command {
	options := world.Options{Log: os.Stderr}
	var name string
	var scale float64
	var faults []string
	var nodes string
	var real world.Nodes
	var made madeOf
	var needed []string
	command := &cobra.Command{
		Use:   "serve",
		Short: "Power the world on and serve it until interrupted",
		Long: `Power the world on and serve it until interrupted. It needs a network namespace of
its own, with all capabilities: its addresses and routes are added to it.

With --nodes talos each VM that has power is a real Talos node with a real kubelet, whose
pods are containers; what they are made of is named by --talos and those after it. Then it
needs a PID namespace of its own as well:

  ` + talosnodes.Unshare + ` castle-sandbox serve …`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			switch nodes {
			case simulatedNodes:
			case talosNodes:
				if missing := unset(cmd.Flags(), needed); len(missing) > 0 {
					return fmt.Errorf("real nodes need --%s as well", strings.Join(missing, ", --"))
				}
				real.Options = made.options
				real.Components = &made.components
				options.Nodes = &real
			default:
				return fmt.Errorf("--nodes %s: there are %s and %s", nodes, simulatedNodes, talosNodes)
			}
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
	flags.StringVar(&nodes, "nodes", simulatedNodes, "what VMs are: simulated, or talos for real Talos nodes in containers")
	flags.StringVar(&real.Layers, "layers", "", "the folder with charts.yaml, whose images real nodes can pull")
	flags.StringVar(&real.Speaker, "speaker", "", "the program of MetalLB's speaker, which castle tool metallb-speaker builds")
	always, kubernetes := made.add(flags)
	needed = slices.Concat([]string{"layers", "speaker"}, always, kubernetes)
	flags.StringArrayVar(&faults, "fault", nil, "what goes wrong (name or name=value)")
	for _, flag := range []string{"cluster", "dir", "binaries"} {
		if err := command.MarkFlagRequired(flag); err != nil {
			panic(err)
		}
	}
	return command
}
