package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/cluster/gates"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cmd/cli"
)

// These commands are called by the layers' hooks; what they need comes by their environment, and what is secret of it
// by the socket that it names.

func newWaitCommand() *cobra.Command {
	var timeout time.Duration
	command := &cobra.Command{
		Use:   "wait GATE",
		Short: "Wait until all conditions of a gate hold",
		Long: `Wait until all conditions of a gate hold. Everything is watched, or asked again
several times a second; a wait that fails says what it waited for, what it saw
last, for how long, and what to look at next.`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			hook, err := run.OpenHook(layers.OfGate(args[0]).Name)
			if err != nil {
				return err
			}
			defer hook.Close()
			if timeout == 0 {
				timeout = gates.Limit(args[0])
			}
			return hook.Wait(cmd.Context(), args[0], timeout)
		},
	}
	command.Flags().DurationVar(&timeout, "timeout", 0, "how long to wait; 0 is the gate's own limit")
	return command
}

func newLayerCommand() *cobra.Command {
	return cli.Hidden(&cobra.Command{
		Use:   "layer start|free|adopt|secrets|end|fail... NAME",
		Short: "Note in the event log where a layer stands; take up what interrupted runs and lost states left; give it its Secrets",
		Args:  cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			layer := args[len(args)-1]
			hook, err := run.OpenHook(layer)
			if err != nil {
				return err
			}
			defer hook.Close()
			for _, deed := range args[:len(args)-1] {
				if err := do(cmd.Context(), hook, deed, layer); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

// do is one of the things that a hook does for a layer.
func do(ctx context.Context, hook *run.Hook, deed, layer string) error {
	switch deed {
	case "start":
		return hook.LayerStarts(ctx, layer)
	case "free":
		return hook.FreeRelease(ctx, layer)
	case "adopt":
		return hook.Adopt(ctx, layer)
	case "secrets":
		return hook.ApplySecrets(ctx, layer)
	case "end":
		return hook.LayerEnds(ctx, layer)
	case "fail":
		return hook.LayerFails(layer)
	}
	return fmt.Errorf("a layer starts, is freed, adopts, gets its secrets, ends or fails, and does not %s", deed)
}

func newTalosCommand() *cobra.Command {
	command := cli.Hidden(cli.Group("talos", "Bring the machines up"))
	command.AddCommand(&cobra.Command{
		Use:   "up",
		Short: "Configure the machines and bootstrap etcd, where that is not done yet",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			hook, err := run.OpenHook(layers.Platform)
			if err != nil {
				return err
			}
			defer hook.Close()
			return hook.TalosUp(cmd.Context())
		},
	})
	return command
}
