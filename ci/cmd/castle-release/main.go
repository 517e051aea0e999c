// Command castle-release makes castle's own releases and verifies them; it runs inside the module's containers. This package holds
// commands and flags only; what they do stands in ci/release.
package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/base/cosign"
	"tazlab.net/castle/ci/base/forward"
	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/cmd/cli"
	"tazlab.net/castle/ci/publish/imagepush"
	"tazlab.net/castle/ci/publish/worktree"
	"tazlab.net/castle/ci/release"
)

// The environment variables that secrets come in by, as those of castle-publish.
const (
	registryPasswordVariable = "CASTLE_REGISTRY_PASSWORD"
	cosignKeyVariable        = "CASTLE_COSIGN_KEY"
	cosignPasswordVariable   = "CASTLE_COSIGN_PASSWORD"
)

func main() {
	redact.Add(cli.Secret(registryPasswordVariable), os.Getenv(cosignKeyVariable), cli.Secret(cosignPasswordVariable))
	cli.Main(cli.Root("castle-release", "Make and verify castle's own releases", newMakeCommand(), newVerifyCommand()))
}

// registryFlags are those of both commands.
type registryFlags struct {
	access  imagepush.Access
	forward []string
}

func (r *registryFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&r.access.Username, "registry-username", "", "the user name for the registry")
	flags.StringArrayVar(&r.access.PlainHTTP, "plain-http", nil, "a registry that speaks HTTP (registry:5000)")
	flags.StringArrayVar(&r.forward, "forward", nil, "listen on a loopback address and forward to another (localhost:5000=registry:5000)")
}

// start opens the forwards and completes the credentials.
func (r *registryFlags) start(cmd *cobra.Command) (stop func(), err error) {
	r.access.Password = cli.Secret(registryPasswordVariable)
	rules := make([]forward.Rule, len(r.forward))
	for i, spec := range r.forward {
		if rules[i], err = forward.Parse(spec); err != nil {
			return nil, err
		}
	}
	return forward.Start(cmd.Context(), rules...)
}

func newMakeCommand() *cobra.Command {
	var options release.Options
	var registry registryFlags
	var source, address string
	command := &cobra.Command{
		Use:   "make",
		Short: "Push and sign the image; write the programs with SBOMs, provenance and signed checksums",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			key := os.Getenv(cosignKeyVariable)
			if key == "" {
				return errors.New("a release is signed: give the private key with --cosign-key and its password with --cosign-password")
			}
			var err error
			if options.Signer, err = cosign.NewSigner(key, cli.Secret(cosignPasswordVariable)); err != nil {
				return err
			}
			commit, err := worktree.Inspect(cmd.Context(), worktree.Options{Dir: source, Subdir: "."})
			if err != nil {
				return err
			}
			options.Commit, options.Created, options.Source = commit.SHA, commit.Time, cmp.Or(address, commit.Source)
			stop, err := registry.start(cmd)
			if err != nil {
				return err
			}
			defer stop()
			options.Registry = registry.access
			pushed, err := release.Make(cmd.Context(), options)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(cmd.OutOrStdout(), pushed.Reference())
			return err
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.Version, "version", "", "the version, such as v0.1.0: castle's own")
	flags.StringVar(&source, "source", "", "castle's Git working tree, which has to be clean")
	flags.StringVar(&address, "source-url", "", "the repository's address (default: that of the tree's remote)")
	flags.StringVar(&options.Builder, "builder", "", "who builds, as an address")
	flags.StringArrayVar(&options.Bases, "base", nil, "an image that programs are compiled and run in, by name and digest")
	flags.StringVar(&options.Programs, "programs", "", "a folder with OS_ARCH/castle")
	flags.StringArrayVar(&options.Images, "image-tar", nil, "the image as a tarball; once for each platform")
	flags.StringVar(&options.Inside, "inside", "", "a folder with the image's programs, OS_ARCH/NAME")
	flags.StringVar(&options.Image, "image", "", "the image's repository")
	flags.BoolVar(&options.Rehearsal, "rehearse", false, "release a version that is none yet (-dev)")
	flags.StringVar(&options.Out, "out", "", "the folder to write to")
	registry.add(command)
	cli.Require(command, "version", "source", "builder", "programs", "image-tar", "inside", "image", "out")
	return command
}

func newVerifyCommand() *cobra.Command {
	var options release.VerifyOptions
	var registry registryFlags
	var format cli.Format
	var keyFile string
	command := &cobra.Command{
		Use:   "verify",
		Short: "Verify a release's files, and its image",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			key, err := os.ReadFile(keyFile)
			if err != nil {
				return fmt.Errorf("read the public key: %w", err)
			}
			if options.Key, err = cosign.NewVerifier(string(key)); err != nil {
				return err
			}
			stop, err := registry.start(cmd)
			if err != nil {
				return err
			}
			defer stop()
			options.Registry = registry.access
			seen, err := release.Verify(cmd.Context(), options)
			if err != nil {
				return err
			}
			return format.PrintFindings(cmd, seen, seen.Failed())
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.Folder, "folder", "", "the release's files")
	flags.StringVar(&options.Version, "version", "", "the version that they are to be (default: any)")
	flags.StringVar(&keyFile, "public-key", "", "a file with the public key (cosign.pub)")
	flags.BoolVar(&options.FilesOnly, "files-only", false, "leave the image out")
	registry.add(command)
	format.Add(command)
	cli.Require(command, "folder", "public-key")
	return command
}
