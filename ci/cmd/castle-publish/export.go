package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"tazlab.net/castle/ci/cmd/cli"
	"tazlab.net/castle/ci/publish/site/hugobuild"
	"tazlab.net/castle/ci/publish/site/hugoconfig"
	"tazlab.net/castle/ci/publish/site/hugoversion"
	"tazlab.net/castle/ci/publish/site/sitesettle"
	"tazlab.net/castle/ci/publish/warning"
	"tazlab.net/castle/ci/publish/worktree"
)

// exported is commit.json: the commit, and what the next steps need to know of the site.
type exported struct {
	worktree.Commit
	// Path is the site's in the commit, Site in the folder beside commit.json.
	Path string `json:"path"`
	Site string `json:"site"`
	// Language is the site's default one.
	Language string `json:"language,omitempty"`
	// BaseURL is that of the site's configuration.
	BaseURL string `json:"baseURL,omitempty"`
	// Hugo is the version that builds the site.
	Hugo hugoversion.Choice `json:"hugo,omitzero"`
	// Cache is which caches builds of the site may use; empty: none that is kept.
	Cache string `json:"cache,omitempty"`
	// Packages is the folder beside commit.json whose npm packages are to be installed before the build, none where
	// it is empty, and PackageFiles are the files in it that decide them.
	Packages     string   `json:"packages,omitempty"`
	PackageFiles []string `json:"packageFiles,omitempty"`
	// Built is the folder in Site that Hugo builds into on its author's machine.
	Built string `json:"built,omitempty"`
	// Warnings say what in the site its author should change.
	Warnings []warning.Warning `json:"warnings,omitempty"`
}

func newExportCommand() *cobra.Command {
	var source worktree.Options
	var out, hugoDefault string
	var asked hugoversion.Choice
	var dirty bool
	command := &cobra.Command{
		Use:   "export",
		Short: "Refuse a working tree that is not clean; write and print commit.json, and write the committed site, made to build alike",
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
			switch found, err := hugoconfig.FilesFS(os.DirFS(made.Site)); {
			case err != nil:
				return err
			case len(found) == 0:
				return noSite(source.Subdir)
			}
			var unheard []string
			if made.Hugo, unheard, err = resolveHugo(cmd.Context(), source, made.SHA != uncommitted, asked, hugoDefault); err != nil {
				return err
			}
			// A folder that is no repository can be looked at, and nothing of it is kept.
			if made.Cache, err = worktree.CacheKey(cmd.Context(), source); err != nil && made.SHA != uncommitted {
				return err
			}
			made.Path = path.Clean(source.Subdir)
			if made.Site, err = filepath.Rel(out, made.Site); err != nil {
				return err
			}
			for _, text := range unheard {
				made.Warnings = append(made.Warnings, warning.Warning{Text: text})
			}
			unsettled, err := sitesettle.Settle(out, filepath.ToSlash(made.Site), made.Hugo.Version, made.Time)
			if err != nil {
				return err
			}
			made.Warnings = append(made.Warnings, unsettled...)
			config, err := hugoconfig.LoadFS(os.DirFS(filepath.Join(out, made.Site)))
			if err != nil {
				return err
			}
			made.Language, made.Built = config.MainLanguage(), hugobuild.BuiltFolder(config)
			if made.BaseURL, err = hugobuild.OwnBaseURL(filepath.Join(out, made.Site)); err != nil {
				return err
			}
			if made.Packages, err = hugobuild.PackageFolder(out, made.Site); err != nil {
				return err
			}
			if made.Packages != "" {
				if made.PackageFiles, err = hugobuild.PackageFiles(filepath.Join(out, made.Packages)); err != nil {
					return err
				}
			}
			data, err := json.MarshalIndent(made, "", "  ")
			if err != nil {
				return err
			}
			if err := os.WriteFile(filepath.Join(out, "commit.json"), data, 0o644); err != nil {
				return err
			}
			_, err = cmd.OutOrStdout().Write(data)
			return err
		},
	}
	flags := command.Flags()
	flags.StringVar(&source.Dir, "source", ".", "the Git working tree")
	flags.StringVar(&source.Subdir, "path", ".", "the Hugo site's folder in it")
	flags.StringVar(&out, "out", "", "the folder to write to")
	flags.StringVar(&asked.Version, "hugo", "", "the version of Hugo, before what the commit says")
	flags.StringVar(&asked.From, "hugo-from", "--hugo", "who asks for it")
	flags.StringVar(&hugoDefault, "hugo-default", "", "the version of Hugo where nobody asks for any")
	flags.BoolVar(&source.Packages, "packages", false, "the site asks for npm packages, whatever its files say")
	flags.BoolVar(&dirty, "dirty", false, "where the tree is not clean, take the site's files as they are, for a look at it")
	cli.Require(command, "out")
	return command
}

// noSite says that a folder, by its path in the repository, has no configuration of Hugo.
func noSite(folder string) error {
	where := "at the top of the repository"
	if folder = path.Clean(folder); folder != "." {
		where = "in " + folder
	}
	return fmt.Errorf("there is no Hugo site %s: it has neither hugo.toml nor another configuration of Hugo; name the site's folder with --path, or in castle.yaml (sites.NAME.path)", where)
}

func export(ctx context.Context, source worktree.Options, dest string) (exported, error) {
	commit, site, err := worktree.Publishable(ctx, source, dest)
	return exported{Commit: commit, Site: site}, err
}

// resolveHugo finds the version of Hugo in the commit, as Git has it, or else in the folder as it is, and what is asked of Hugo there
// that is not heeded.
func resolveHugo(
	ctx context.Context, source worktree.Options, committed bool, asked hugoversion.Choice, fallback string,
) (chosen hugoversion.Choice, unheard []string, err error) {
	folder := source.Dir
	if committed {
		part, err := os.MkdirTemp("", "castle-hugo-*")
		if err != nil {
			return chosen, nil, err
		}
		defer os.RemoveAll(part)
		if err := worktree.Part(ctx, source.Dir, part, hugoversion.Paths(source.Subdir)...); err != nil {
			return chosen, nil, err
		}
		folder = part
	}
	if chosen, err = hugoversion.Resolve(os.DirFS(folder), source.Subdir, asked, fallback); err != nil {
		return chosen, nil, err
	}
	unheard, err = hugoversion.Unheard(os.DirFS(folder), source.Subdir, chosen)
	return chosen, unheard, err
}

// uncommitted stands where else a commit's SHA does.
const uncommitted = "uncommitted"

// exportDirty takes a clean tree's commit, as publishing does, and else the files as they are. They name no commit;
// their time is any that is always the same.
func exportDirty(ctx context.Context, source worktree.Options, dest string) (exported, error) {
	if made, err := export(ctx, source, dest); err == nil {
		return made, nil
	}
	if err := os.RemoveAll(dest); err != nil {
		return exported{}, err
	}
	commit := worktree.Commit{SHA: uncommitted, Short: uncommitted, Time: time.Unix(1, 0).UTC()}
	site, err := worktree.Copy(source, dest)
	return exported{Commit: commit, Site: site}, err
}

func newReachableCommand() *cobra.Command {
	var commitFile, knownHosts string
	command := &cobra.Command{
		Use:   "reachable",
		Short: "Make sure that the commit is on one of the remote's branches or tags",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			commit, err := readCommit(commitFile)
			if err != nil {
				return err
			}
			_, err = worktree.Reachable(cmd.Context(), commit.RemoteURL, commit.SHA, gitCredentials(knownHosts))
			return err
		},
	}
	command.Flags().StringVar(&commitFile, "commit", "", "commit.json")
	command.Flags().StringVar(&knownHosts, "known-hosts", "", "a known_hosts file for ssh, that must hold the remote's key (default: ssh's own files)")
	return command
}

func readCommit(name string) (exported, error) {
	var commit exported
	data, err := os.ReadFile(name)
	if err != nil {
		return commit, fmt.Errorf("read the commit: %w", err)
	}
	if err := json.Unmarshal(data, &commit); err != nil {
		return commit, fmt.Errorf("%s is not what castle-publish export writes: %w", name, err)
	}
	return commit, nil
}
