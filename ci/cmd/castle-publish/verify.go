package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/base/cosign"
	"tazlab.net/castle/ci/cmd/cli"
	"tazlab.net/castle/ci/publish/verify"
)

// signerOf opens the key of the environment where it is asked for. All that is wrong with how it was asked for is one error.
func signerOf(sign, sbom bool) (*cosign.Signer, error) {
	key, password := os.Getenv(cosignKeyVariable), cli.Secret(cosignPasswordVariable)
	var mistakes []error
	if sbom && !sign {
		mistakes = append(mistakes, errors.New("--sbom needs --sign: an SBOM that nobody signed proves nothing"))
	}
	if sign && key == "" {
		mistakes = append(mistakes, errors.New("--sign needs the private key: give it with --cosign-key (file:cosign.key, env:NAME), and its password with "+
			"--cosign-password; `cosign generate-key-pair` makes one"))
	}
	if !sign && key != "" {
		mistakes = append(mistakes, errors.New("--cosign-key is given and --sign is not: add it, or leave the key out"))
	}
	if len(mistakes) > 0 || !sign {
		return nil, errors.Join(mistakes...)
	}
	return cosign.NewSigner(key, password)
}

func newSigningKeyCommand() *cobra.Command {
	var sign, sbom bool
	command := &cobra.Command{
		Use:   "signing-key",
		Short: "Refuse a key that does not sign, before anything is built",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, err := signerOf(sign, sbom)
			return err
		},
	}
	addSignFlags(command, &sign, &sbom)
	return command
}

func addSignFlags(command *cobra.Command, sign, sbom *bool) {
	command.Flags().BoolVar(sign, "sign", false, "sign the image as cosign does, with the key of the environment")
	command.Flags().BoolVar(sbom, "sbom", false, "attach a signed SBOM (SPDX) to the image")
}

func newVerifyCommand() *cobra.Command {
	var manifest manifestFlags
	var options verify.Options
	var format cli.Format
	var keyFile string
	command := &cobra.Command{
		Use:   "verify",
		Short: "Verify the signature, the SBOM and the digest of the image that the manifest names",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			key, err := os.ReadFile(keyFile)
			if err != nil {
				return fmt.Errorf("read the public key: %w", err)
			}
			if options.Key, err = cosign.NewVerifier(string(key)); err != nil {
				return err
			}
			stop, err := manifest.start(cmd.Context())
			if err != nil {
				return err
			}
			defer stop()
			options.Image, options.Repository, options.Update = manifest.image, manifest.repository, manifest.update
			options.Registry.Password = cli.Secret(registryPasswordVariable)
			seen, err := verify.Run(cmd.Context(), options)
			if err != nil {
				return err
			}
			return format.PrintFindings(cmd, seen, seen.Failed())
		},
	}
	manifest.add(command)
	flags := command.Flags()
	flags.StringVar(&keyFile, "public-key", "", "a file with the public key (cosign.pub)")
	flags.BoolVar(&options.SBOM, "sbom", true, "ask for a signed SBOM, too")
	addRegistryFlags(command, &options.Registry)
	format.Add(command)
	format.AddFile(command)
	cli.Require(command, "public-key")
	return command
}
