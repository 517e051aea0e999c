package main

import (
	"context"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/cmd/cli"
	"tazlab.net/castle/ci/demo"
	"tazlab.net/castle/ci/setup"
)

func newDemoCommand() *cobra.Command {
	var h host
	command := cli.Group("demo", "Publish this repository's blog on this machine alone, and create a cluster in the sandbox")
	h.add(command)
	on := func(use, short string, do func(*cobra.Command, demo.Demo) error) *cobra.Command {
		return &cobra.Command{
			Use: use, Short: short, Args: cobra.NoArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				d, err := h.demo(cmd)
				if err != nil {
					return err
				}
				return do(cmd, d)
			},
		}
	}
	command.AddCommand(
		on("up", "Make an engine ready, publish, and show the result", func(cmd *cobra.Command, d demo.Demo) error {
			return d.Up(cmd.Context())
		}),
		h.startsNothing(on("down", "Stop and remove what the demo started", func(cmd *cobra.Command, d demo.Demo) error {
			return d.Down(cmd.Context())
		})),
		cli.Hidden(on("serve", "Serve the registry and the Git remote in the foreground", func(cmd *cobra.Command, d demo.Demo) error {
			return d.World().Serve(cmd.Context())
		})),
	)
	return command
}

func (h *host) demo(cmd *cobra.Command) (demo.Demo, error) {
	h.groups = []string{"create"}
	own, err := h.engine(cmd.Context(), cmd.ErrOrStderr())
	if err != nil {
		return demo.Demo{}, err
	}
	program, err := os.Executable()
	if err != nil {
		return demo.Demo{}, err
	}
	source, err := filepath.Abs(filepath.Dir(h.images))
	if err != nil {
		return demo.Demo{}, err
	}
	return demo.Demo{
		Dir:    filepath.Join(h.cache, "demo"),
		Source: source,
		Setup:  h.setup(own, cmd.ErrOrStderr()),
		Images: func(ctx context.Context, plan setup.Plan) error {
			return h.addGroups(ctx, plan, own, cmd.ErrOrStderr())
		},
		Serve: []string{program, "demo", "serve", "--cache=" + h.cache, "--images=" + h.images, "--mirror=" + mirrorNever},
		// Not the command's own: Dagger draws its progress where it finds a terminal.
		Out: os.Stdout,
		Log: os.Stderr,
	}, nil
}
