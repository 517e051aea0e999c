package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/base/forward"
	"tazlab.net/castle/ci/base/git"
	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cmd/cli"
	"tazlab.net/castle/ci/gitops/gitopsrepo"
)

// repoFlags are those of the command repo.
type repoFlags struct {
	request    gitopsrepo.Request
	out        string
	over       bool
	remote     gitopsrepo.Remote
	knownHosts string
	plainHTTP  []string
	forward    []string
}

func newRepoCommand() *cobra.Command {
	var f repoFlags
	command := &cobra.Command{
		Use:   "repo",
		Short: "Render a cluster's whole GitOps repository into a folder, or push it into an empty remote",
		Args:  cobra.NoArgs,
		RunE:  func(cmd *cobra.Command, _ []string) error { return f.run(cmd) },
	}
	usual, asked := gitopsrepo.PartNames()
	flags := command.Flags()
	flags.StringVar(&f.request.Folder, "folder", "", "the cluster's folder, with cluster.yaml")
	flags.StringVar(&f.request.Domain, "domain", "", "the domain whose names lead to the cluster, such as example.org")
	flags.StringVar(&f.request.ACMEEmail, "acme-email", "", "whom Let's Encrypt writes to")
	flags.StringVar(&f.request.Issuer, "acme-issuer", gitopsrepo.Staging, "staging or production")
	flags.StringVar(&f.request.BlogImage, "blog-image", "", "the blog's image, with or without a tag that is published")
	flags.StringVar(&f.request.BlogHost, "blog-host", "", "the blog's host (default: blog. and the domain)")
	flags.IntVar(&f.request.BlogPort, "blog-port", 80, "the port that the blog's container listens on, as castle.yaml says it")
	flags.StringVar(&f.request.IngressAddress, "ingress-address", "", "Traefik's address (default: the last of the load balancer's first range)")
	flags.StringVar(&f.request.GitProvider, "git-provider", "", "whose webhook calls Flux: github, gitlab, gitea, bitbucket or generic (default: by the host of gitops.url)")
	flags.StringVar(&f.request.AlertType, "alert-type", "generic", "whom Flux tells of failures: generic, slack, discord, msteams, rocket or googlechat")
	flags.StringVar(&f.request.RunnerGroup, "runner-group", "", "the organization's runner group that the runners join (default: GitHub's own, Default)")
	flags.StringVar(&f.request.Owner, "owner", "", "whose jobs the runners of GitHub Actions take (default: the owner of gitops.url)")
	flags.StringVar(&f.request.BackupBucket, "backup-bucket", "", "the bucket of etcd's backups (default: that of the states)")
	flags.StringVar(&f.request.BackupEndpoint, "backup-endpoint", "", "the address of that bucket's store")
	flags.StringVar(&f.request.BackupRegion, "backup-region", "", "the region of that bucket, for AWS")
	flags.StringSliceVar(&f.request.AgeRecipients, "age-recipient", nil, "the public key (age1…) that SOPS encrypts for (default: those of the cluster's SOPS file)")
	flags.StringVar(&f.request.ChartMirror, "chart-mirror", "", "where all charts come from (https://… or oci://…) instead of each from its own repository")
	flags.StringSliceVar(&f.request.Without, "without", nil, "parts to leave out: "+strings.Join(usual, ", "))
	flags.StringSliceVar(&f.request.With, "with", nil, "parts to add: "+strings.Join(asked, ", "))
	flags.StringVar(&f.out, "out", "", "the folder to write to")
	flags.BoolVar(&f.over, "over", false, "write into a folder that is not empty, over the files of the repository")
	flags.StringVar(&f.remote.URL, "push", "", "the empty remote to push to")
	flags.StringVar(&f.remote.Branch, "branch", "", "the branch to push (default: gitops.branch)")
	flags.StringVar(&f.remote.AuthorName, "author-name", "", "the commit's author")
	flags.StringVar(&f.remote.AuthorEmail, "author-email", "", "the author's address")
	flags.StringVar(&f.knownHosts, "known-hosts", "", "a known_hosts file for ssh, that must hold the remote's key (default: ssh's own files)")
	flags.StringArrayVar(&f.plainHTTP, "git-plain-http", nil, "a Git host that gets the token over plain HTTP (git:3000)")
	flags.StringArrayVar(&f.forward, "forward", nil, "listen on a loopback address and forward to another (localhost:3000=git:3000)")
	cli.Require(command, "folder")
	command.MarkFlagsOneRequired("out", "push")
	return command
}

func (f *repoFlags) run(cmd *cobra.Command) error {
	files, err := gitopsrepo.Render(f.request)
	if f.remote.URL != "" {
		if cluster, unread := config.Load(f.request.Folder); unread == nil {
			f.remote.Branch = cmp.Or(f.remote.Branch, cluster.GitOps.Branch)
			err = errors.Join(err, f.remote.Check())
		}
	}
	if err != nil {
		return err
	}
	if f.out != "" {
		if err := files.Write(f.out, f.over); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "wrote %d files to %s; README.md says what comes next\n", len(files), f.out)
	}
	if f.remote.URL == "" {
		return nil
	}
	rules := make([]forward.Rule, len(f.forward))
	for i, spec := range f.forward {
		if rules[i], err = forward.Parse(spec); err != nil {
			return err
		}
	}
	stop, err := forward.Start(cmd.Context(), rules...)
	if err != nil {
		return err
	}
	defer stop()
	f.remote.Credentials = git.Credentials{
		Token: os.Getenv(gitTokenVariable), PlainHTTP: f.plainHTTP,
		KnownHosts: f.knownHosts, SSHAuthSock: os.Getenv("SSH_AUTH_SOCK"),
	}
	sha, err := files.Push(cmd.Context(), f.remote)
	if err != nil {
		return err
	}
	fmt.Fprintf(cmd.OutOrStdout(), "pushed %d files to %s %s as %s; README.md there says what comes next\n", len(files), redact.URL(f.remote.URL), f.remote.Branch, sha[:12])
	return nil
}
