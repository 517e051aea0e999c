// Package cli is what castle's programs share on their command lines: how they start and end, and flags that several have.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/base/retry"
	"tazlab.net/castle/ci/base/version"
)

// Exit ends the program with a status of its own, without a message: the command has said everything already.
type Exit int

func (e Exit) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// Main runs a program until it is done, interrupted or terminated. What went wrong is printed with "castle: " in front,
// whichever of the programs it was: the module takes that away before it passes the error on.
//
// Of the secrets that the process knows, none is in that, and none in what a command writes to its output and its error
// output. A command whose output is data for another program, not to be changed, writes to os.Stdout.
//
// around begins what lasts as long as the command, such as tracing.Start, and returns what ends it.
func Main(root *cobra.Command, around ...func(context.Context) (context.Context, func())) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	var ends []func()
	for _, begin := range around {
		var end func()
		ctx, end = begin(ctx)
		ends = append(ends, end)
	}
	status := execute(ctx, root, os.Stdout, os.Stderr)
	stop()
	for _, end := range ends {
		end()
	}
	if status != 0 {
		os.Exit(status)
	}
}

// execute is Main on two writers; it returns the exit status.
func execute(ctx context.Context, root *cobra.Command, out, errOut io.Writer) int {
	root.SetOut(redact.Writer(out))
	root.SetErr(redact.Writer(errOut))
	err := root.ExecuteContext(retry.To(ctx, root.ErrOrStderr()))
	if err == nil {
		return 0
	}
	if exit, is := errors.AsType[Exit](err); is {
		return int(exit)
	}
	fmt.Fprintf(root.ErrOrStderr(), "castle: %v\n", err)
	return 1
}

// Root makes the command that a program is.
func Root(use, short string, commands ...*cobra.Command) *cobra.Command {
	root := Group(use, short, commands...)
	root.Version, root.SilenceErrors, root.SilenceUsage = version.Castle, true, true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())
	})
	return root
}

// Group makes a command that holds others. Cobra would answer a mistyped one below it with the help text and success.
func Group(use, short string, commands ...*cobra.Command) *cobra.Command {
	group := &cobra.Command{
		Use: use, Short: short,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return fmt.Errorf("unknown command %q; see %s --help", args[0], cmd.CommandPath())
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	group.AddCommand(commands...)
	return group
}

// Hidden leaves a command that no person calls out of the help.
func Hidden(command *cobra.Command) *cobra.Command {
	command.Hidden = true
	return command
}

// Require makes flags obligatory that have no sensible default. They exist: an unknown name is a mistake of the caller.
func Require(command *cobra.Command, names ...string) {
	for _, name := range names {
		if err := command.MarkFlagRequired(name); err != nil {
			panic(err)
		}
	}
}
