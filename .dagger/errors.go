package main

import (
	"errors"
	"strings"

	"dagger/castle/internal/dagger"
)

// plain turns the failure of a command in a container into what the command
// said: castle's own messages name the thing and the fix, and "exit code 1"
// around them helps nobody.
func plain(err error) error {
	var failed *dagger.ExecError
	if !errors.As(err, &failed) {
		return err
	}
	said := strings.TrimSpace(failed.Stderr)
	if said == "" {
		said = strings.TrimSpace(failed.Stdout)
	}
	if said == "" {
		return err
	}
	// What stands before castle's own message are the steps that led there; they
	// were shown while it ran.
	if i := strings.LastIndex("\n"+said, "\ncastle: "); i >= 0 {
		said = said[i:]
	}
	return errors.New(strings.TrimPrefix(said, "castle: "))
}
