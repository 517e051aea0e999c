package daggerengine

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tazlab.net/castle/ci/base/filelock"
)

// lock makes sure that one command at a time starts or stops the engine.
func lock(name string) (unlock func() error, err error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, err
	}
	unlock, err = filelock.Try(name)
	if errors.Is(err, filelock.ErrHeld) {
		err = fmt.Errorf("another command starts or stops the engine at this moment, wait for it to end: %w", err)
	}
	return unlock, err
}
