package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/cluster/gates"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cmd/cli"
)

// These commands are called by the layers' hooks; everything that they need comes by the environment that create gives.

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
			hook, err := run.OpenHook()
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
		Use:       "layer start|free|adopt|secrets|end|fail NAME",
		Short:     "Note in the event log where a layer stands; take up what interrupted runs and lost states left; give it its Secrets",
		Args:      cobra.ExactArgs(2),
		ValidArgs: []string{"start", "free", "adopt", "secrets", "end", "fail"},
		RunE: func(cmd *cobra.Command, args []string) error {
			hook, err := run.OpenHook()
			if err != nil {
				return err
			}
			defer hook.Close()
			switch args[0] {
			case "start":
				return hook.LayerStarts(cmd.Context(), args[1])
			case "free":
				return hook.FreeRelease(cmd.Context(), args[1])
			case "adopt":
				return hook.Adopt(cmd.Context(), args[1])
			case "secrets":
				return hook.ApplySecrets(cmd.Context(), args[1])
			case "end":
				return hook.LayerEnds(cmd.Context(), args[1])
			case "fail":
				return hook.LayerFails(args[1])
			}
			return fmt.Errorf("a layer starts, is freed, adopts, gets its secrets, ends or fails, and does not %s", args[0])
		},
	})
}

func newTalosCommand() *cobra.Command {
	command := cli.Hidden(cli.Group("talos", "Bring the machines up"))
	command.AddCommand(&cobra.Command{
		Use:   "up",
		Short: "Configure the machines and bootstrap etcd, where that is not done yet",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			hook, err := run.OpenHook()
			if err != nil {
				return err
			}
			defer hook.Close()
			return hook.TalosUp(cmd.Context())
		},
	})
	return command
}
