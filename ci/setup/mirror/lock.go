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
// looks again every half second: the kernel has no wait for a file lock that a context could end.
func lock(ctx context.Context, path string, log io.Writer) (unlock func() error, err error) {
	told := false
	for {
		unlock, err := filelock.Try(path)
		if !errors.Is(err, filelock.ErrHeld) {
			return unlock, err
		}
		if !told {
			say(log, "waiting for another castle mirror build on %s", path)
			told = true
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for another castle mirror build on %s: %w", path, context.Cause(ctx))
		case <-time.After(500 * time.Millisecond):
		}
	}
}
