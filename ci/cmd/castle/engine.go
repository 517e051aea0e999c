package main

import (
	"context"
	"fmt"
	"net"
	"os"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/debian"
	"tazlab.net/castle/ci/engine"
	"tazlab.net/castle/ci/gotool"
	"tazlab.net/castle/ci/mirror"
	"tazlab.net/castle/ci/setup"
)

func newSetupCommand() *cobra.Command {
	var h host
	command := &cobra.Command{
		Use:   "setup",
		Short: "Make a Dagger engine ready; print the variables for a shell to evaluate",
		Long: `Make a Dagger engine ready: the one that the environment names, else Docker's,
else one built from Go modules. Use it as

    eval "$(castle setup)"
    dagger call publish-blog --help`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			own, err := h.engine(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			plan, err := setup.Setup{Engine: own, Log: cmd.ErrOrStderr()}.Ready(cmd.Context())
			if err != nil {
				return err
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), plan.Shell())
			return err
		},
	}
	h.add(command)
	return command
}

func newEngineCommand() *cobra.Command {
	var h host
	command := group("engine", "Run a Dagger engine built from Go modules, where there is no Docker")
	h.add(command)
	command.AddCommand(
		h.onEngine("up", "Build the pinned engine, unless it is built, and start it, unless it runs", engineUp),
		h.startsNothing(h.onEngine("down", "Stop the engine; what it cached stays", engineDown)),
		h.startsNothing(h.onEngine("status", "Tell whether the engine runs; exit status 3 when it does not", engineStatus)),
		hidden(h.onEngine("run", "Supervise the engine in the foreground", h.engineRun)),
		hidden(h.onEngine("enter", "Become the engine, inside its mount namespace", func(_ *cobra.Command, e engine.Engine) error {
			return e.Enter(h.mirror == mirrorAlways)
		})),
	)
	return command
}

func (h *host) onEngine(use, short string, do func(*cobra.Command, engine.Engine) error) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			own, err := h.engine(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			return do(cmd, own)
		},
	}
}

func hidden(command *cobra.Command) *cobra.Command {
	command.Hidden = true
	return command
}

func engineUp(cmd *cobra.Command, own engine.Engine) error {
	status, err := own.Up(cmd.Context())
	if err != nil {
		return err
	}
	printStatus(cmd, status)
	return nil
}

func engineDown(cmd *cobra.Command, own engine.Engine) error {
	ran, err := own.Down(cmd.Context())
	if err == nil && !ran {
		fmt.Fprintln(cmd.OutOrStdout(), "no engine was running")
	} else if err == nil {
		fmt.Fprintln(cmd.OutOrStdout(), "stopped the engine")
	}
	return err
}

// notRunning is status's exit status, as init scripts have it (LSB: 3).
const notRunning exitError = 3

func engineStatus(cmd *cobra.Command, own engine.Engine) error {
	status, err := own.Status(cmd.Context())
	if err != nil {
		return err
	}
	printStatus(cmd, status)
	if status.State != engine.Running {
		return notRunning
	}
	return nil
}

func printStatus(cmd *cobra.Command, status engine.Status) {
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "state  %s\n", status.State)
	if status.State == engine.Running {
		fmt.Fprintf(out, "pid    %d\nhost   %s\ncli    %s\n", status.PID, status.Host, status.CLI)
	}
	fmt.Fprintf(out, "log    %s\n", status.Log)
}

func (h *host) engineRun(cmd *cobra.Command, own engine.Engine) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	inside := []string{program, "engine", "enter", "--cache=" + h.cache, "--images=" + h.images, "--mirror=" + h.mirror}
	if h.mirror != mirrorAlways {
		return own.Run(cmd.Context(), inside, nil)
	}
	list, err := h.list()
	if err != nil {
		return err
	}
	return own.Run(cmd.Context(), inside, &engine.Mirror{
		Serve: func(ctx context.Context, ready func(net.Addr)) error {
			return mirror.Serve(ctx, mirror.ServeOptions{Cache: h.mirrorCache(), Addr: "127.0.0.1:0", Log: cmd.ErrOrStderr(), Ready: ready})
		},
		Config: func(address string) ([]byte, error) { return mirror.EngineConfig(list, address) },
	})
}

func newToolCommand() *cobra.Command {
	var h host
	command := hidden(&cobra.Command{
		Use:   "tool NAME",
		Short: "Build a tool from Go modules, unless it is built; print its folder",
		Args:  cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			recipe, err := gotool.Load(args[0])
			if err != nil {
				return err
			}
			builder := h.tools(cmd.ErrOrStderr())
			if _, err := builder.Build(cmd.Context(), args[0]); err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), builder.Dir(recipe))
			return err
		},
	})
	h.add(command)
	return command
}

func newPackagesCommand() *cobra.Command {
	return hidden(&cobra.Command{
		Use:   "packages PACKAGE...",
		Short: "Install those of the Debian packages that are missing",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return debian.Install(cmd.Context(), args...)
		},
	})
}
