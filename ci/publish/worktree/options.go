package worktree

import (
	"context"
	"fmt"
	"path"
	"strings"

	"tazlab.net/castle/ci/base/git"
)

// Options name what is to be published.
type Options struct {
	// Dir is the top folder of a Git working tree.
	Dir string
	// Subdir is the folder to publish, relative to Dir and with slashes; empty means all.
	Subdir string
	// Packages says that the site asks for npm packages, whatever its files say.
	Packages bool
}

// subdir is the cleaned Subdir, empty for the top.
func (o Options) subdir() (string, error) {
	clean := path.Clean(o.Subdir)
	if clean == "." {
		return "", nil
	}
	if path.IsAbs(clean) || clean == ".." || strings.HasPrefix(clean, "../") {
		return "", fmt.Errorf("folder %q is not inside the repository: name it relative to the repository's top", o.Subdir)
	}
	return clean, nil
}

// repository is one Git repository: the published one or a submodule of it.
type repository struct {
	git git.Runner
	dir string
}

// openRepository prepares git for the folder. Content filters of the repository's own configuration are switched off: they
// are programs of the machine the copy came from.
func openRepository(ctx context.Context, dir string) (repository, error) {
	runner := git.Runner{
		Dir: dir,
		Env: []string{
			"GIT_OPTIONAL_LOCKS=0",                     // status would write the refreshed index back
			"GIT_NO_REPLACE_OBJECTS=1",                 // what is published is the commit itself
			"GIT_LITERAL_PATHSPECS=1",                  // a file may be called *
			"GIT_NO_LAZY_FETCH=1",                      // a partial clone is refused, not completed without asking
			"GIT_CEILING_DIRECTORIES=" + parentOf(dir), // a folder without .git is no part of a repository around it
		},
		Config: []git.Setting{
			{Key: "core.fileMode", Value: "false"},
			{Key: "core.autocrlf", Value: "input"},
			{Key: "core.excludesFile", Value: "/dev/null"},
			{Key: "core.attributesFile", Value: "/dev/null"},
			{Key: "core.untrackedCache", Value: "false"},
			{Key: "log.showSignature", Value: "false"},
		},
	}
	listed, err := runner.Run(ctx, "config", "--null", "--name-only", "--get-regexp", `^filter\.`)
	if err != nil && !exitedWith(err, 1) {
		return repository{}, err
	}
	for _, key := range splitNUL(listed) {
		off := ""
		if strings.HasSuffix(key, ".required") {
			off = "false"
		}
		runner.Config = append(runner.Config, git.Setting{Key: key, Value: off})
	}
	return repository{git: runner, dir: dir}, nil
}

// line runs git and returns its output without the final newline.
func (r repository) line(ctx context.Context, args ...string) (string, error) {
	out, err := r.git.Run(ctx, args...)
	return strings.TrimSuffix(out, "\n"), err
}
