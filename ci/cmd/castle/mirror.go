package main

import (
	"fmt"
	"os"
	"time"

	"github.com/google/renameio/v2"
	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/cmd/cli"
	"tazlab.net/castle/ci/setup/images"
	"tazlab.net/castle/ci/setup/mirror"
)

func newMirrorCommand() *cobra.Command {
	var h host
	command := cli.Group("mirror", "Keep the images of images.yaml near the engine")
	h.add(command)
	command.AddCommand(newMirrorBuildCommand(&h), newMirrorServeCommand(&h), newMirrorSyncCommand(&h), newMirrorVerifyCommand(&h), newMirrorDigestsCommand(&h))
	return command
}

func newMirrorBuildCommand(h *host) *cobra.Command {
	var rebuild bool
	command := &cobra.Command{
		Use:   "build",
		Short: "Make stand-ins for a machine that cannot pull, from Go modules and Debian packages",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := h.list()
			if err != nil {
				return err
			}
			built, err := h.buildMirror(cmd.Context(), list, h.asked(), rebuild, cmd.ErrOrStderr())
			for _, one := range built {
				state := "there already"
				if one.Made {
					state = "built in " + one.Took.Round(time.Second).String()
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s  %s  %.0f MB  %s\n", one.Image.Reference(), one.Digest, float64(one.Size)/1e6, state)
			}
			return err
		},
	}
	command.Flags().BoolVar(&rebuild, "rebuild", false, "make them anew, to take in Debian's updates")
	h.addHugo(command)
	return command
}

func newMirrorServeCommand(h *host) *cobra.Command {
	var address string
	command := &cobra.Command{
		Use:   "serve",
		Short: "Serve the stand-ins as a registry mirror, in the foreground",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return mirror.Serve(cmd.Context(), mirror.ServeOptions{Cache: h.mirrorCache(), Addr: address, Log: cmd.ErrOrStderr()})
		},
	}
	command.Flags().StringVar(&address, "address", mirror.DefaultAddr, "where to listen")
	return command
}

func newMirrorSyncCommand(h *host) *cobra.Command {
	var options mirror.SyncOptions
	command := &cobra.Command{
		Use:   "sync REGISTRY",
		Short: "Copy the real images to a private registry, for an air gap or against rate limits",
		Args:  oneRegistry,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if options.List, err = h.chosen(); err != nil {
				return err
			}
			options.To, options.Log = args[0], cmd.ErrOrStderr()
			synced, err := mirror.Sync(cmd.Context(), options)
			for _, one := range synced {
				state := "there already"
				if one.Copied {
					state = "copied"
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s  %s  %s\n", one.Target, one.Digest, state)
			}
			return err
		},
	}
	command.Flags().StringSliceVar(&options.Platforms, "platform", nil, "copy these platforms alone: the copies have other digests then, and are pulled after verify --pin")
	return command
}

// chosen is the whole list, or less of it where groups are named: what a registry holds costs nothing but room, unlike
// what is built.
func (h *host) chosen() (images.List, error) {
	list, err := h.list()
	if err != nil || len(h.groups) == 0 {
		return list, err
	}
	return list.In(h.groups...)
}

// oneRegistry wants the registry as the only argument.
func oneRegistry(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return fmt.Errorf("%d arguments: want one registry, as in %s localhost:5000", len(args), cmd.CommandPath())
	}
	return nil
}

func newMirrorDigestsCommand(h *host) *cobra.Command {
	return &cobra.Command{
		Use:   "digests",
		Short: "Write into the list the digests that it lacks, as the registries have them now",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			list, err := h.chosen()
			if err != nil {
				return err
			}
			text, err := os.ReadFile(h.images)
			if err != nil {
				return err
			}
			with, err := mirror.Digests(cmd.Context(), list, string(text), nil)
			if err != nil {
				return err
			}
			return renameio.WriteFile(h.images, []byte(with), 0o644)
		},
	}
}

func newMirrorVerifyCommand(h *host) *cobra.Command {
	var options mirror.VerifyOptions
	var pin bool
	command := &cobra.Command{
		Use:   "verify REGISTRY",
		Short: "Make sure that a mirror has every image, for its platforms and with its digest",
		Args:  oneRegistry,
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if options.List, err = h.chosen(); err != nil {
				return err
			}
			options.Registry = args[0]
			findings, err := mirror.Verify(cmd.Context(), options)
			problems := 0
			for _, finding := range findings {
				fmt.Fprintln(cmd.OutOrStdout(), finding)
				if finding.Problem != nil {
					problems++
				}
			}
			if err == nil && pin {
				return mirror.LocalOf(findings).WriteBeside(h.images)
			}
			if problems == 0 || cmd.Context().Err() != nil {
				return err
			}
			// The findings said everything already.
			return fmt.Errorf("%d of %d images are not in %s as %s wants them: is it running, and was it filled (castle mirror sync, castle mirror build)?",
				problems, len(findings), options.Registry, h.images)
		},
	}
	command.Flags().BoolVar(&pin, "pin", false, "when all is well, write "+images.LocalFile+", so that the module pulls what the mirror holds under other digests")
	return command
}
