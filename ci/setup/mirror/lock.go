package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"tazlab.net/castle/ci/base/filelock"
)

// lock holds the file until unlock is called or the process ends. While another process holds it, it says so once and
// looks again every half second.
func lock(ctx context.Context, path string, log io.Writer) (unlock func() error, err error) {
	unlock, err = filelock.Await(ctx, path, 500*time.Millisecond, func() {
		say(log, "waiting for another castle mirror build on %s", path)
	})
	if err != nil && errors.Is(err, ctx.Err()) {
		err = fmt.Errorf("waiting for another castle mirror build on %s: %w", path, context.Cause(ctx))
	}
	return unlock, err
}
