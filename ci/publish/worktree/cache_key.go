package worktree

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// CacheKey names what builds of one site may leave for each other: it is the same for all commits of a repository's
// site, and another one for every other repository and site. A build runs code of the site's themes and packages, so
// what one site leaves in a cache must not reach the next.
//
// The repository is known by its remote, which a commit cannot set, whatever its castle.yaml says. One without a
// remote, or with one on this machine, whose path says little, is known by its first commits as well.
func CacheKey(ctx context.Context, options Options) (string, error) {
	subdir, err := options.subdir()
	if err != nil {
		return "", err
	}
	if err := checkSource(options.Dir); err != nil {
		return "", err
	}
	r, err := openRepository(ctx, options.Dir)
	if err != nil {
		return "", err
	}
	commit, err := r.commit(ctx)
	if err != nil {
		return "", err
	}
	first := ""
	if commit.Source == "" {
		if first, err = r.git.Run(ctx, "rev-list", "--max-parents=0", commit.SHA); err != nil {
			return "", err
		}
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %q", commit.RemoteURL, first, subdir))
	return hex.EncodeToString(sum[:16]), nil
}
