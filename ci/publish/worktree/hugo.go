package worktree

import (
	"bytes"
	"context"
	"errors"

	"tazlab.net/castle/ci/publish/site/hugoconfig"
)

// usesGitInfo reports whether the site's committed configuration sets enableGitInfo, so that the build reads the history.
func usesGitInfo(ctx context.Context, entries []entry) (bool, error) {
	byPath := map[string]entry{}
	var names []string
	for _, e := range entries {
		if e.kind == "blob" && e.mode != modeSymlink {
			byPath[e.path] = e
			names = append(names, e.path)
		}
	}
	config, err := hugoconfig.Load(names, func(name string) (content []byte, err error) {
		err = readBlobs(ctx, []entry{byPath[name]}, func(_ entry, read []byte) error {
			content = bytes.Clone(read)
			return nil
		})
		return content, err
	})
	if broken, ok := errors.AsType[*hugoconfig.FileError](err); ok {
		broken.Name = byPath[broken.Name].source
	}
	return config.Bool("enableGitInfo", false), err
}
