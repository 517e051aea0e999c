package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"
)

// lock holds the file until unlock is called or the process ends. While another process holds it, it says so once and
// looks again every half second: the kernel has no wait for a file lock that a context could end.
func lock(ctx context.Context, path string, log io.Writer) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	told := false
	for {
		err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { _ = file.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) {
			_ = file.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if !told {
			say(log, "waiting for another castle mirror build on %s", path)
			told = true
		}
		select {
		case <-ctx.Done():
			_ = file.Close()
			return nil, fmt.Errorf("waiting for another castle mirror build on %s: %w", path, context.Cause(ctx))
		case <-time.After(500 * time.Millisecond):
		}
	}
}
