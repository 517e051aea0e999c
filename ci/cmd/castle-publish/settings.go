package main

import (
	"encoding/json"
	"path/filepath"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/cmd/cli"
	"tazlab.net/castle/ci/publish/settings"
)

func newSettingsCommand() *cobra.Command {
	var folder, need string
	var flags settings.Settings
	var cluster settings.Cluster
	command := &cobra.Command{
		Use:   "settings",
		Short: "Print a site's settings as JSON: flags before the cluster's, before those of " + settings.FileName,
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			file, err := settings.Load(filepath.Join(folder, settings.FileName))
			if err != nil {
				return err
			}
			resolved, err := settings.Resolve(file, flags, cluster, settings.Need(need))
			if err != nil {
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(resolved)
		},
	}
	set := command.Flags()
	set.StringVar(&folder, "folder", "", "the folder that holds "+settings.FileName+", if there is one")
	set.StringVar(&need, "for", string(settings.ForManifest), "what cannot be left out: build, image or manifest")
	for _, flag := range []struct {
		value *string
		name  string
		usage string
	}{
		{&flags.Site, "site", "the site's name"},
		{&flags.Path, "path", "the Hugo site's folder"},
		{&flags.Image, "image", "the image's repository"},
		{&flags.TagPrefix, "tag-prefix", "what stands before the SHA in the tag"},
		{&flags.Hugo, "hugo", "the version of Hugo"},
		{&flags.BaseURL, "base-url", "the base URL"},
		{&flags.Headers, "headers", "the security headers"},
		{&flags.GitOpsURL, "gitops-url", "the GitOps repository"},
		{&flags.GitOpsBranch, "gitops-branch", "the branch that Flux follows"},
		{&flags.AuthorName, "author-name", "the GitOps commit's author"},
		{&flags.AuthorEmail, "author-email", "the author's address"},
		{&flags.Manifest, "manifest", "the manifest's path in the GitOps repository"},
		{&flags.Container, "container", "the container that is meant"},
		{&flags.Resource, "resource", "the resource that is meant (Kind/name)"},
		{&flags.Deployment, "deployment", "the Deployment that is waited for (namespace/name)"},
		{&flags.RegistryUsername, "registry-username", "the user name for the registry"},
		{&flags.GitHubAPI, "github-api", "the address of GitHub's API"},
		{&cluster.GitOpsURL, "cluster-gitops-url", "the GitOps repository of the named cluster"},
		{&cluster.GitOpsBranch, "cluster-gitops-branch", "its branch"},
		{&cluster.Registry, "cluster-registry", "the named cluster's own registry"},
	} {
		set.StringVar(flag.value, flag.name, "", flag.usage)
	}
	set.StringArrayVar(&flags.Platforms, "platform", nil, "a platform to publish for; several times")
	set.IntVar(&flags.Port, "port", 0, "the port that nginx listens on")
	set.BoolVar(&flags.PinDigest, "pin-digest", false, "write the digest beside the tag")
	set.BoolVar(&flags.PullRequest, "pull-request", false, "open a pull request instead of pushing")
	cli.Require(command, "folder")
	return command
}

func newSitesCommand() *cobra.Command {
	var folder string
	command := &cobra.Command{
		Use:   "sites",
		Short: "Print the names of a repository's sites as JSON",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			names, err := settings.Sites(folder)
			if err != nil {
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(names)
		},
	}
	command.Flags().StringVar(&folder, "folder", "", "the folder that holds "+settings.FileName+", or Hugo's configuration, if there is any")
	cli.Require(command, "folder")
	return command
}
