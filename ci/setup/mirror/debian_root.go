package mirror

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"tazlab.net/castle/ci/setup/debian"
)

// Root gives the layer of a Debian root with these packages, as stand-ins have it: the one in the cache, or a new one. The
// cache must be another folder than a mirror's, where Build removes what no stand-in uses. A new one needs what Build
// needs of the machine.
func Root(ctx context.Context, cache string, packages []string, log io.Writer) (v1.Layer, error) {
	b := &builder{
		BuildOptions: BuildOptions{Cache: cache, Log: log}, arch: runtime.GOARCH,
		debian: debian.Root, fresh: map[string]bool{},
	}
	if err := os.MkdirAll(b.layers(), 0o755); err != nil {
		return nil, fmt.Errorf("cache of Debian roots: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(cache, "build.lock"), log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = unlock() }()
	root, err := b.root(ctx, packages)
	if err != nil {
		return nil, err
	}
	return root.layer, nil
}
