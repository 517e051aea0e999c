// Package gitservertest has a repository refuse pushes, for tests of what pushes.
package gitservertest

import (
	"context"
	_ "embed"
	"errors"
	"os"
	"path/filepath"

	"tazlab.net/castle/ci/base/git"
)

// protectHook refuses updates of the branches named by the repository's castle.protected settings.
//
//go:embed protect.sh
var protectHook []byte

// Protect makes pushes to the branches fail with the words GitHub uses, by an update hook in the bare repository. It
// replaces the list of an earlier call; no branches means none is protected.
func Protect(ctx context.Context, dir string, branches ...string) error {
	repository := git.Runner{Dir: dir}
	var failed *git.Error
	if _, err := repository.Run(ctx, "config", "--unset-all", "castle.protected"); err != nil {
		const notSet = 5 // exit code of git config for a key that is not there
		if !errors.As(err, &failed) || failed.ExitCode != notSet {
			return err
		}
	}
	for _, branch := range branches {
		if _, err := repository.Run(ctx, "config", "--add", "castle.protected", branch); err != nil {
			return err
		}
	}
	hooks := filepath.Join(dir, "hooks")
	if err := os.MkdirAll(hooks, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(hooks, "update"), protectHook, 0o755)
}
