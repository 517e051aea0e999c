//go:build unix

// Package filelock lets one process at a time hold a file or folder; the kernel releases it when the process ends, so
// there are no stale locks. The kernel has no wait for one that a context could end, so Await tries again and again.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrHeld says that another process holds the lock.
var ErrHeld = errors.New("another process holds the lock")

// Try takes the lock on a file, which it creates, or on a folder that is there. It returns ErrHeld, wrapped with the
// name, when somebody else has it.
func Try(name string) (unlock func() error, err error) {
	file, err := try(name)
	if err != nil {
		return nil, err
	}
	return file.Close, nil
}

// Await is Try, again and again until the lock is free, every so often; held, which may be nil, is called once where it is not so at first.
// When ctx ends before, it returns ctx's error.
func Await(ctx context.Context, name string, every time.Duration, held func()) (unlock func() error, err error) {
	for {
		unlock, err := Try(name)
		if !errors.Is(err, ErrHeld) {
			return unlock, err
		}
		if held != nil {
			held()
			held = nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(every):
		}
	}
}

// TryWithChildren is Try for a process whose children go on when it is killed: each that it starts from now on, and each that those
// start, holds the lock as well, so that it is free when the last of them has ended. unlock frees it for all at once.
func TryWithChildren(name string) (unlock func() error, err error) {
	file, err := try(name)
	if err != nil {
		return nil, err
	}
	if _, err := unix.FcntlInt(file.Fd(), unix.F_SETFD, 0); err != nil { // not closed by exec
		return nil, errors.Join(fmt.Errorf("lock %s: %w", name, err), file.Close())
	}
	return func() error { return errors.Join(unix.Flock(int(file.Fd()), unix.LOCK_UN), file.Close()) }, nil
}

func try(name string) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if errors.Is(err, unix.EISDIR) {
		file, err = os.Open(name)
	}
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = ErrHeld
		}
		return nil, fmt.Errorf("lock %s: %w", name, err)
	}
	return file, nil
}
