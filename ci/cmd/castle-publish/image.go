package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/base/version"
	"tazlab.net/castle/ci/cmd/cli"
	"tazlab.net/castle/ci/publish/imagepush"
	"tazlab.net/castle/ci/publish/inputs"
	"tazlab.net/castle/ci/publish/site/builtsite"
	"tazlab.net/castle/ci/publish/site/siteheaders"
	"tazlab.net/castle/ci/publish/siteimage"
	"tazlab.net/castle/ci/publish/siteimage/ocilayout"
)

func newImageCommand() *cobra.Command {
	var options siteimage.Options
	var baseName, hugoName, commitFile, out, baseURL, headersOut string
	var headers siteheaders.Mode
	var bases, wanted, after []string
	command := &cobra.Command{
		Use:   "image",
		Short: "Put a built site on top of nginx; write an OCI layout",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			commit, err := readCommit(commitFile)
			if err != nil {
				return err
			}
			address, err := builtsite.Address(options.Site, baseURL)
			if err != nil {
				return err
			}
			options.Path = address.Path
			if options.Headers, err = siteheaders.Make(cmd.Context(), headers, options.Site, baseURL, options.CacheDir); err != nil {
				return err
			}
			if err := writeHeaders(headersOut, options.Headers); err != nil {
				return err
			}
			options.Revision, options.Source, options.Created = commit.SHA, commit.Source, commit.Time
			options.Hugo, options.Language = commit.Hugo, commit.Language
			options.BaseName, options.BaseDigest, _ = strings.Cut(baseName, "@")
			opened, platforms, err := openBases(bases, wanted, options.BaseName)
			if err != nil {
				return err
			}
			options.Inputs = inputs.Inputs{
				Commit: commit.SHA, Path: commit.Path, Hugo: hugoName, Base: baseName, Castle: version.Castle,
				Platforms: platforms, Port: options.Port, BaseURL: baseURL, Headers: string(headers), AfterBuild: after,
			}
			var images []v1.Image
			for _, options.Base = range opened {
				image, report, err := siteimage.Build(cmd.Context(), options)
				if err != nil {
					return err
				}
				images = append(images, image)
				if err := json.NewEncoder(cmd.OutOrStdout()).Encode(report); err != nil {
					return err
				}
			}
			if len(images) == 1 {
				return ocilayout.Write(out, images[0])
			}
			index, err := siteimage.Index(options.Inputs, images...)
			if err != nil {
				return err
			}
			return ocilayout.Write(out, index)
		},
	}
	flags := command.Flags()
	flags.StringVar(&options.Site, "site", "", "Hugo's output")
	flags.StringArrayVar(&bases, "base", nil, "the base image as a tarball; once for each platform")
	flags.StringArrayVar(&wanted, "platform", nil, "the platform that each base has to be for, in their order; default: any")
	flags.StringVar(&baseName, "base-name", "", "the base image's name with its digest, for the labels")
	flags.StringVar(&hugoName, "hugo-name", "", "likewise that of the image that built the site")
	flags.StringVar(&commitFile, "commit", "", "commit.json")
	flags.IntVar(&options.Port, "port", siteimage.DefaultPort, "the port that nginx listens on")
	flags.StringArrayVar(&after, "after-build", nil, "a command that ran on the site after Hugo, for the labels; several times")
	addHeadersFlag(command, &headers)
	flags.StringVar(&baseURL, "base-url", "",
		"the address that the site is served at, with its path; default: what its home page's canonical link, "+
			"site map or feed says")
	flags.StringVar(&headersOut, "headers-out", "", "a file to write the headers to, for publish")
	flags.StringVar(&options.CacheDir, "cache", "", "a folder that keeps compressed layers, and what headers are fitted to, between runs")
	flags.StringVar(&out, "out", "", "the folder to write to")
	cli.Require(command, "site", "base", "commit", "out")
	return command
}

func newHeadersCommand() *cobra.Command {
	var headers siteheaders.Mode
	command := &cobra.Command{
		Use:   "headers",
		Short: "Refuse headers that are none, before anything is built",
		Args:  cobra.NoArgs,
		RunE:  func(*cobra.Command, []string) error { return nil }, // the flag is all
	}
	addHeadersFlag(command, &headers)
	return command
}

// headersFlag is refused while the command line is read: a build takes minutes.
type headersFlag struct{ mode *siteheaders.Mode }

func (f headersFlag) String() string { return string(*f.mode) }

func (f headersFlag) Type() string { return "string" }

func (f headersFlag) Set(text string) (err error) {
	*f.mode, err = siteheaders.Parse(text)
	return err
}

func addHeadersFlag(command *cobra.Command, mode *siteheaders.Mode) {
	*mode = siteheaders.Fitted
	command.Flags().Var(headersFlag{mode}, "headers", "the security headers: fitted, strict, off, or the text of a Content-Security-Policy")
}

// openBases opens the base images, each for one platform, and returns these platforms, sorted. Where platforms are wanted, there is
// one for each file: an engine that finds none of that platform takes another.
func openBases(files, wanted []string, name string) (bases []v1.Image, platforms []string, err error) {
	if len(wanted) > 0 && len(wanted) != len(files) {
		return nil, nil, fmt.Errorf("%d times --base, and %d times --platform", len(files), len(wanted))
	}
	for i, file := range files {
		base, err := ocilayout.Image(file, "")
		if err != nil {
			return nil, nil, err
		}
		config, err := base.ConfigFile()
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", file, err)
		}
		if len(wanted) > 0 && !isFor(config.Platform(), wanted[i]) {
			return nil, nil, fmt.Errorf("platform %s: the base %s has no image for it, only for %s; take it out of --platforms, or of platforms in castle.yaml",
				wanted[i], name, config.Platform())
		}
		bases, platforms = append(bases, base), append(platforms, config.Platform().String())
	}
	slices.Sort(platforms)
	return bases, platforms, nil
}

// isFor tells whether an image is for a platform. Not every one says its variant, nor has everybody to ask for it.
func isFor(has *v1.Platform, wanted string) bool {
	want, err := v1.ParsePlatform(wanted)
	if err != nil || has == nil {
		return false
	}
	return has.OS == want.OS && has.Architecture == want.Architecture && (has.Variant == "" || want.Variant == "" || has.Variant == want.Variant)
}

func writeHeaders(name string, headers siteheaders.Headers) error {
	if name == "" {
		return nil
	}
	data, err := json.MarshalIndent(headers, "", "  ")
	if err != nil {
		return err
	}
	return errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, data, 0o644))
}

func newArchiveCommand() *cobra.Command {
	var layout, out string
	command := &cobra.Command{
		Use:   "archive",
		Short: "Write the image of an OCI layout as a tarball that an engine imports",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			artifact, err := ocilayout.Read(layout)
			if err != nil {
				return err
			}
			image, ok := artifact.(v1.Image)
			if !ok {
				return fmt.Errorf("%s holds an index over several platforms: name one platform", layout)
			}
			return writeArchive(out, image)
		},
	}
	command.Flags().StringVar(&layout, "layout", "", "the image's OCI layout")
	command.Flags().StringVar(&out, "out", "", "the file to write to")
	cli.Require(command, "layout", "out")
	return command
}

func newPullCommand() *cobra.Command {
	var access imagepush.Access
	var image, tag, out string
	var forwards []string
	command := &cobra.Command{
		Use:   "pull",
		Short: "Pull a published image as a tarball that an engine imports",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			stop, err := startForwards(cmd.Context(), forwards)
			if err != nil {
				return err
			}
			defer stop()
			separator := ":"
			if strings.HasPrefix(tag, "sha256:") {
				separator = "@"
			}
			access.Password = cli.Secret(registryPasswordVariable)
			pulled, err := imagepush.Fetch(cmd.Context(), access, image+separator+tag, v1.Platform{OS: "linux", Architecture: runtime.GOARCH})
			if err != nil {
				return err
			}
			return writeArchive(out, pulled)
		},
	}
	flags := command.Flags()
	flags.StringVar(&image, "image", "", "the image's repository")
	flags.StringVar(&tag, "tag", "", "its tag or digest")
	addRegistryFlags(command, &access)
	flags.StringVar(&out, "out", "", "the file to write to")
	addForwardFlag(command, &forwards)
	cli.Require(command, "image", "tag", "out")
	return command
}

// writeArchive writes a Docker archive. The name in it is of no consequence, but the format wants one.
func writeArchive(out string, image v1.Image) error {
	return tarball.WriteToFile(out, name.MustParseReference("blog:published"), image)
}
