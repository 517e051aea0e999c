package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/base/forward"
	"tazlab.net/castle/ci/base/git"
	"tazlab.net/castle/ci/cmd/cli"
	"tazlab.net/castle/ci/publish/gitops"
	"tazlab.net/castle/ci/publish/imagepush"
	"tazlab.net/castle/ci/publish/pullrequest"
)

// The environment variables that secrets come in by. A flag would show them in the list of processes and in the
// engine's log.
const (
	gitTokenVariable         = "CASTLE_GIT_TOKEN"
	registryPasswordVariable = "CASTLE_REGISTRY_PASSWORD"
	cosignKeyVariable        = "CASTLE_COSIGN_KEY"
	cosignPasswordVariable   = "CASTLE_COSIGN_PASSWORD"
)

// gitCredentials are those that the container was given.
func gitCredentials(knownHosts string, plainHTTP ...string) git.Credentials {
	return git.Credentials{
		PlainHTTP:   plainHTTP,
		Token:       os.Getenv(gitTokenVariable),
		KnownHosts:  knownHosts,
		SSHAuthSock: os.Getenv("SSH_AUTH_SOCK"),
	}
}

// addRegistryFlags adds those of every command that talks to a registry. The password comes by the environment.
func addRegistryFlags(command *cobra.Command, access *imagepush.Access) {
	command.Flags().DurationVar(&access.RetryFor, "retry-for", 0, "how long a step that fails is tried again, from its first failure on; 0: 4m")
	command.Flags().StringVar(&access.Username, "registry-username", "", "the user name for the registry")
	command.Flags().StringArrayVar(&access.PlainHTTP, "plain-http", nil, "a registry that speaks HTTP (registry:5000)")
}

// manifestFlags are those of every command on a manifest.
type manifestFlags struct {
	repository gitops.Repository
	update     gitops.UpdateRequest
	image      string
	knownHosts string
	plainHTTP  []string
	forward    []string
}

func (m *manifestFlags) add(command *cobra.Command) {
	flags := command.Flags()
	flags.StringVar(&m.repository.URL, "gitops-url", "", "the GitOps repository")
	flags.StringVar(&m.repository.Branch, "gitops-branch", gitops.DefaultBranch, "the branch that Flux follows")
	flags.StringVar(&m.update.Path, "manifest", "", "the manifest's path in the repository")
	flags.StringVar(&m.image, "image", "", "the image's repository")
	flags.StringVar(&m.update.Selector.Container, "container", "", "the container that is meant")
	flags.StringVar(&m.update.Selector.Resource, "resource", "", "the resource that is meant (Kind/name)")
	flags.StringVar(&m.knownHosts, "known-hosts", "", "a known_hosts file for ssh, that must hold the remote's key (default: ssh's own files)")
	flags.StringArrayVar(&m.plainHTTP, "git-plain-http", nil, "a Git host that gets the token over plain HTTP (git:3000)")
	addForwardFlag(command, &m.forward)
	cli.Require(command, "gitops-url", "manifest", "image")
}

// start opens the forwards and completes the repository's credentials.
func (m *manifestFlags) start(ctx context.Context) (stop func(), err error) {
	m.repository.Credentials = gitCredentials(m.knownHosts, m.plainHTTP...)
	m.update.Selector.Image = m.image
	return startForwards(ctx, m.forward)
}

func addForwardFlag(command *cobra.Command, forwards *[]string) {
	command.Flags().StringArrayVar(forwards, "forward", nil, "listen on a loopback address and forward to another (localhost:5000=registry:5000)")
}

func startForwards(ctx context.Context, specs []string) (stop func(), err error) {
	rules := make([]forward.Rule, len(specs))
	for i, spec := range specs {
		if rules[i], err = forward.Parse(spec); err != nil {
			return nil, err
		}
	}
	return forward.Start(ctx, rules...)
}

// addPullRequestFlags adds those of every command that may propose its change.
func addPullRequestFlags(command *cobra.Command, options *pullrequest.Options) {
	flags := command.Flags()
	flags.BoolVar(&options.Use, "pull-request", false, "open a pull request on GitHub instead of pushing to the branch that Flux follows")
	flags.StringVar(&options.API, "github-api", "", "the address of GitHub's API, where the repository is not on github.com (https://HOST/api/v3/)")
	flags.DurationVar(&options.Wait, "merge-timeout", 0, "how long to wait for the pull request's merge; 0: not at all")
}

// addCommitFlags adds those of every command that commits to the repository.
func addCommitFlags(command *cobra.Command, update *gitops.UpdateRequest) {
	flags := command.Flags()
	flags.StringVar(&update.PushBranch, "push-branch", "", "push to this branch instead")
	flags.BoolVar(&update.PinDigest, "pin-digest", false, "write the digest beside the tag")
	flags.BoolVar(&update.DryRun, "dry-run", false, "compare and push nothing")
	flags.StringVar(&update.Author.Name, "author-name", "", "the commit's author")
	flags.StringVar(&update.Author.Email, "author-email", "", "the author's address")
	flags.StringVar(&update.SigningKey, "signing-key", "", "an SSH private key to sign the commit with")
}
