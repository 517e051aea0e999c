package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/base/forward"
	"tazlab.net/castle/ci/base/git"
	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/publish"
	"tazlab.net/castle/ci/publish/gitops"
	"tazlab.net/castle/ci/publish/imagepush"
	"tazlab.net/castle/ci/publish/site/sitesettle"
	"tazlab.net/castle/ci/publish/worktree"
)

// The environment variables that secrets come in by. A flag would show them in
// the list of processes and in the engine's log.
const (
	gitTokenVariable         = "CASTLE_GIT_TOKEN"
	registryPasswordVariable = "CASTLE_REGISTRY_PASSWORD"
)

func newBlogCommand() *cobra.Command {
	command := group("blog", "The steps of publish-blog; they run inside castle's containers")
	command.AddCommand(newExportCommand(), newReachableCommand(), newNodeModulesCommand(), newBuildCommand(), newImageCommand(),
		newArchiveCommand(), newPublishCommand(), newWaitBlogCommand(), newRollbackCommand(), newHistoryCommand(), newCheckCommand(),
		newBrowseCommand(), newPullCommand(), newCompareCommand())
	return command
}

// exported is commit.json: the commit, the site's path in it, where the site
// is in the folder beside it, and what in the site is worth mending.
type exported struct {
	worktree.Commit
	Path     string   `json:"path"`
	Site     string   `json:"site"`
	Warnings []string `json:"warnings,omitempty"`
}

func newExportCommand() *cobra.Command {
	var source worktree.Options
	var out string
	var dirty bool
	command := &cobra.Command{
		Use:   "export",
		Short: "Refuse a working tree that is not clean; write commit.json and the committed site, made to build alike",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			export := export
			if dirty {
				export = exportDirty
			}
			made, err := export(cmd.Context(), source, filepath.Join(out, "work"))
			if err != nil {
				return err
			}
			if made.Warnings, err = sitesettle.Settle(made.Site, made.Time); err != nil {
				return err
			}
			made.Path = path.Clean(source.Subdir)
			if made.Site, err = filepath.Rel(out, made.Site); err != nil {
				return err
			}
			data, err := json.MarshalIndent(made, "", "  ")
			if err != nil {
				return err
			}
			return os.WriteFile(filepath.Join(out, "commit.json"), data, 0o644)
		},
	}
	flags := command.Flags()
	flags.StringVar(&source.Dir, "source", ".", "the Git working tree")
	flags.StringVar(&source.Subdir, "path", "blog", "the Hugo site's folder in it")
	flags.StringVar(&out, "out", "", "the folder to write to")
	flags.BoolVar(&dirty, "dirty", false, "where the tree is not clean, take the site's folder as it is, for a look at it")
	require(command, "out")
	return command
}

func export(ctx context.Context, source worktree.Options, dest string) (exported, error) {
	commit, err := worktree.Inspect(ctx, source)
	if err != nil {
		return exported{}, err
	}
	site, err := worktree.Export(ctx, source, dest)
	return exported{Commit: commit, Site: site}, err
}

// exportDirty takes a clean tree's commit, as publishing does, and else the
// site's folder as it is. That names no commit; its time is any that is always
// the same.
func exportDirty(ctx context.Context, source worktree.Options, dest string) (exported, error) {
	if made, err := export(ctx, source, dest); err == nil {
		return made, nil
	}
	if err := os.RemoveAll(dest); err != nil {
		return exported{}, err
	}
	commit := worktree.Commit{SHA: "uncommitted", Short: "uncommitted", Time: time.Unix(1, 0).UTC()}
	site := filepath.Join(source.Dir, source.Subdir)
	if info, err := os.Stat(site); err != nil || !info.IsDir() {
		return exported{}, fmt.Errorf("%s has no folder %s: name the Hugo site's folder with --path", source.Dir, source.Subdir)
	}
	return exported{Commit: commit, Site: dest}, os.CopyFS(dest, os.DirFS(site))
}

func newReachableCommand() *cobra.Command {
	var source, knownHosts string
	command := &cobra.Command{
		Use:   "reachable",
		Short: "Make sure that the commit is on one of the remote's branches or tags",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			commit, err := worktree.Inspect(cmd.Context(), worktree.Options{Dir: source, Subdir: "."})
			if err != nil {
				return err
			}
			_, err = worktree.Reachable(cmd.Context(), commit.RemoteURL, commit.SHA, gitCredentials(knownHosts))
			return err
		},
	}
	command.Flags().StringVar(&source, "source", ".", "the Git working tree")
	command.Flags().StringVar(&knownHosts, "known-hosts", "", "a known_hosts file for ssh")
	return command
}

// gitCredentials are those that the container was given.
func gitCredentials(knownHosts string) git.Credentials {
	return git.Credentials{
		Token:       os.Getenv(gitTokenVariable),
		KnownHosts:  knownHosts,
		SSHAuthSock: os.Getenv("SSH_AUTH_SOCK"),
	}
}

// addRegistryFlags adds those of every command that talks to a registry. The
// password comes by the environment.
func addRegistryFlags(command *cobra.Command, access *imagepush.Access) {
	command.Flags().StringVar(&access.Username, "registry-username", "", "the user name for the registry")
	command.Flags().StringArrayVar(&access.PlainHTTP, "plain-http", nil, "a registry that speaks HTTP (registry:5000)")
}

// manifestFlags are those of every command on a manifest.
type manifestFlags struct {
	repository gitops.Repository
	update     gitops.UpdateRequest
	image      string
	knownHosts string
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
	flags.StringVar(&m.knownHosts, "known-hosts", "", "a known_hosts file for ssh")
	addForwardFlag(command, &m.forward)
	require(command, "gitops-url", "manifest", "image")
}

// start opens the forwards and completes the repository's credentials.
func (m *manifestFlags) start(ctx context.Context) (stop func(), err error) {
	m.repository.Credentials = gitCredentials(m.knownHosts)
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

func newPublishCommand() *cobra.Command {
	var manifest manifestFlags
	var options publish.Options
	var rollout rolloutFlags
	var wait bool
	var commitFile, headersFile, began, format string
	var steps []string
	command := &cobra.Command{
		Use:   "publish",
		Short: "Push the image, then point the manifest at it",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			commit, err := readCommit(commitFile)
			if err != nil {
				return err
			}
			options.Commit, options.Warnings = commit.Commit, commit.Warnings
			if options.Headers, err = publish.ReadHeaders(headersFile); err != nil {
				return err
			}
			for _, text := range steps {
				step, err := publish.ParseStep(text)
				if err != nil {
					return err
				}
				options.Steps = append(options.Steps, step)
			}
			if began != "" {
				if options.Began, err = time.Parse(time.RFC3339Nano, began); err != nil {
					return err
				}
			}
			if wait {
				if manifest.update.DryRun || manifest.update.PushBranch != "" {
					return errors.New("--wait waits for what Flux rolls out: it goes neither with --dry-run nor with --push-branch")
				}
				if options.Waiter, err = rollout.open(cmd); err != nil {
					return fmt.Errorf("nothing is published yet, since its rollout could not be waited for: %w", err)
				}
			}
			stop, err := manifest.start(cmd.Context())
			if err != nil {
				return err
			}
			defer stop()
			options.Image, options.Repository, options.Update = manifest.image, manifest.repository, manifest.update
			options.DryRun = manifest.update.DryRun
			options.Registry.Password = os.Getenv(registryPasswordVariable)
			result, err := publish.Run(cmd.Context(), options)
			if _, unseen := errors.AsType[*publish.RolloutError](err); err != nil && !unseen {
				return err
			}
			return errors.Join(render(cmd, result, format), err)
		},
	}
	manifest.add(command)
	addCommitFlags(command, &manifest.update)
	flags := command.Flags()
	flags.StringVar(&commitFile, "commit", "", "commit.json")
	flags.StringVar(&options.Layout, "layout", "", "the image's OCI layout")
	flags.StringVar(&headersFile, "headers-report", "", "the image's headers, for the report")
	flags.StringVar(&options.TagPrefix, "tag-prefix", "", "what stands before the SHA in the tag")
	addRegistryFlags(command, &options.Registry)
	flags.StringArrayVar(&steps, "step", nil, "a step that is done already, name=duration")
	flags.StringVar(&began, "began", "", "when the run began")
	flags.BoolVar(&wait, "wait", false, "wait until the cluster runs what was published")
	rollout.add(command)
	addFormatFlag(command, &format)
	require(command, "commit", "layout")
	return command
}

func readCommit(name string) (exported, error) {
	var commit exported
	data, err := os.ReadFile(name)
	if err != nil {
		return commit, fmt.Errorf("read the commit: %w", err)
	}
	if err := json.Unmarshal(data, &commit); err != nil {
		return commit, fmt.Errorf("%s is not what castle blog export writes: %w", name, err)
	}
	return commit, nil
}

// renderer is a result that can be written in several formats.
type renderer interface {
	Render(format string) (string, error)
}

// formatFlag is refused while the command line is read: a report that cannot be
// written must not be found out after the image was pushed.
type formatFlag struct{ format *string }

func (f formatFlag) String() string { return *f.format }

func (f formatFlag) Type() string { return "string" }

func (f formatFlag) Set(text string) error {
	*f.format = text
	return rendering.Check(text)
}

func addFormatFlag(command *cobra.Command, format *string) {
	*format = "text"
	command.Flags().Var(formatFlag{format}, "format", "text, json or markdown")
}

// require makes flags obligatory that have no sensible default. They exist: an
// unknown name is a mistake in this package.
func require(command *cobra.Command, names ...string) {
	for _, name := range names {
		if err := command.MarkFlagRequired(name); err != nil {
			panic(err)
		}
	}
}

func render(cmd *cobra.Command, result renderer, format string) error {
	text, err := result.Render(format)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(cmd.OutOrStdout(), text)
	return err
}
