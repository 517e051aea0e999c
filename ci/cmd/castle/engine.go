package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/cmd/cli"
	"tazlab.net/castle/ci/setup"
	"tazlab.net/castle/ci/setup/daggerengine"
	"tazlab.net/castle/ci/setup/debian"
	"tazlab.net/castle/ci/setup/gotool"
	"tazlab.net/castle/ci/setup/mirror"
)

func newSetupCommand() *cobra.Command {
	var h host
	command := &cobra.Command{
		Use:   "setup",
		Short: "Make a Dagger engine ready; print the variables for a shell to evaluate",
		Long: `Make a Dagger engine ready: the one that the environment names, else Docker's,
else one built from Go modules. Use it as

    eval "$(castle setup)"
    dagger call publish-blog --help

Where nothing can be pulled, that engine gets a mirror of stand-ins for what
publishing pulls. Other pipelines name the group of their images:

    eval "$(castle setup --group create)"`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			own, err := h.engine(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			plan, err := h.setup(own, cmd.ErrOrStderr()).Ready(cmd.Context())
			if err != nil {
				return err
			}
			if err := h.addGroups(cmd.Context(), plan, own, cmd.ErrOrStderr()); err != nil {
				return err
			}
			_, err = fmt.Fprint(cmd.OutOrStdout(), plan.Shell())
			return err
		},
	}
	h.add(command)
	h.addHugo(command)
	return command
}

func (h *host) setup(own daggerengine.Engine, log io.Writer) setup.Setup {
	return setup.Setup{Engine: own, Log: log, Pin: func(ctx context.Context, plan setup.Plan) error {
		return h.pin(ctx, plan, own, log)
	}}
}

// addGroups makes the stand-ins of the groups for an engine of castle's own that runs: its mirror shows them at once.
func (h *host) addGroups(ctx context.Context, plan setup.Plan, own daggerengine.Engine, log io.Writer) error {
	if len(h.asked()) == 0 || h.mirror != mirrorAlways {
		return nil
	}
	if mine, err := uses(ctx, plan, own); err != nil || !mine {
		return err
	}
	list, err := h.list()
	if err != nil {
		return err
	}
	_, err = h.buildMirror(ctx, list, h.asked(), false, log)
	return err
}

func newEngineCommand() *cobra.Command {
	var h host
	command := cli.Group("engine", "Run a Dagger engine built from Go modules, where there is no Docker")
	h.add(command)
	command.AddCommand(
		h.onEngine("up", "Build the pinned engine, unless it is built, and start it, unless it runs", h.engineUp),
		h.startsNothing(h.onEngine("down", "Stop the engine; what it cached stays", engineDown)),
		h.startsNothing(h.onEngine("status", "Tell whether the engine runs; exit status 3 when it does not", engineStatus)),
		cli.Hidden(h.onEngine("run", "Supervise the engine in the foreground", h.engineRun)),
		cli.Hidden(h.onEngine("enter", "Become the engine, inside its mount namespace", func(_ *cobra.Command, e daggerengine.Engine) error {
			return e.Enter(h.mirror == mirrorAlways)
		})),
	)
	return command
}

func (h *host) onEngine(use, short string, do func(*cobra.Command, daggerengine.Engine) error) *cobra.Command {
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

func (h *host) engineUp(cmd *cobra.Command, own daggerengine.Engine) error {
	status, err := own.Up(cmd.Context())
	if err != nil {
		return err
	}
	if err := h.addGroups(cmd.Context(), setup.Plan{Kind: setup.Built}, own, cmd.ErrOrStderr()); err != nil {
		return err
	}
	if err := h.pin(cmd.Context(), setup.Plan{Kind: setup.Built}, own, cmd.ErrOrStderr()); err != nil {
		return err
	}
	printStatus(cmd, status)
	return nil
}

func engineDown(cmd *cobra.Command, own daggerengine.Engine) error {
	ran, err := own.Down(cmd.Context())
	if err == nil && !ran {
		fmt.Fprintln(cmd.OutOrStdout(), "no engine was running")
	} else if err == nil {
		fmt.Fprintln(cmd.OutOrStdout(), "stopped the engine")
	}
	return err
}

// notRunning is status's exit status, as init scripts have it (LSB: 3).
const notRunning cli.Exit = 3

func engineStatus(cmd *cobra.Command, own daggerengine.Engine) error {
	status, err := own.Status(cmd.Context())
	if err != nil {
		return err
	}
	printStatus(cmd, status)
	if status.State != daggerengine.Running {
		return notRunning
	}
	return nil
}

func printStatus(cmd *cobra.Command, status daggerengine.Status) {
	out := cmd.OutOrStdout()
	fmt.Fprintf(out, "state  %s\n", status.State)
	if status.State == daggerengine.Running {
		fmt.Fprintf(out, "pid    %d\nhost   %s\ncli    %s\n", status.PID, status.Host, status.CLI)
	}
	fmt.Fprintf(out, "log    %s\n", status.Log)
}

func (h *host) engineRun(cmd *cobra.Command, own daggerengine.Engine) error {
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
	return own.Run(cmd.Context(), inside, &daggerengine.Mirror{
		Serve: func(ctx context.Context, ready func(net.Addr)) error {
			return mirror.Serve(ctx, mirror.ServeOptions{Cache: h.mirrorCache(), Addr: "127.0.0.1:0", Log: cmd.ErrOrStderr(), Ready: ready})
		},
		Config: func(address string) ([]byte, error) { return mirror.EngineConfig(list, address) },
	})
}

func newToolCommand() *cobra.Command {
	var h host
	var scratch string
	command := cli.Hidden(&cobra.Command{
		Use:   "tool NAME...",
		Short: "Build tools from Go modules, unless they are built; print their folders",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, names []string) error {
			builder := h.tools(cmd.ErrOrStderr())
			builder.Scratch = scratch
			batch := builder.Batch()
			defer batch.Close()
			recipes := make([]gotool.Recipe, len(names))
			for i, name := range names {
				var err error
				if recipes[i], err = gotool.Load(name); err != nil {
					return err
				}
			}
			if err := batch.BuildAll(cmd.Context(), names...); err != nil {
				return err
			}
			for _, recipe := range recipes {
				fmt.Fprintln(cmd.OutOrStdout(), builder.Dir(recipe))
			}
			return nil
		},
	})
	command.Flags().StringVar(&scratch, "scratch", "", "keep the compiler's cache in this folder for the next build")
	h.add(command)
	return command
}

func newPackagesCommand() *cobra.Command {
	return cli.Hidden(&cobra.Command{
		Use:   "packages PACKAGE...",
		Short: "Install those of the Debian packages that are missing",
		Args:  cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return debian.Install(cmd.Context(), args...)
		},
	})
}
