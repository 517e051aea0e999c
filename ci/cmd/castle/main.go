// Command castle is the program inside castle's containers and the helper on
// the machine that calls them. This package holds commands and flags only;
// what they do stands in the packages beside it.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/base/version"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newRootCommand().ExecuteContext(ctx)
	stop()
	if err == nil {
		return
	}
	var exit exitError
	if errors.As(err, &exit) {
		os.Exit(int(exit))
	}
	fmt.Fprintf(os.Stderr, "castle: %v\n", err)
	os.Exit(1)
}

// exitError ends the program with a status of its own, without a message: the
// command has said everything already.
type exitError int

func (e exitError) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// group makes a command that holds others. Cobra would answer a mistyped one
// below it with the help text and success.
func group(use, short string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return fmt.Errorf("unknown command %q; see %s --help", args[0], cmd.CommandPath())
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "castle",
		Short:         "Build, publish and run a self-hosted platform",
		Version:       version.Castle,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	})
	root.AddCommand(newSetupCommand(), newDemoCommand(), newEngineCommand(), newMirrorCommand(), newBlogCommand(), newPackagesCommand(), newToolCommand(),
		newClusterCommand(), newWaitCommand(), newLayerCommand(), newTalosCommand(), newChartsCommand(), newPostrenderCommand())
	return root
}
