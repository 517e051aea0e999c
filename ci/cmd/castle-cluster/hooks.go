package main

import (
	"time"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/cluster/gates"
	"tazlab.net/castle/ci/cluster/run"
)

// Gates within a layer are called by its module; what they need comes by their environment.

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
