package run

import (
	"errors"
	"slices"
	"strings"
	"time"

	"tazlab.net/castle/ci/base/filelock"
)

const (
	orphansEnd   = 5 * time.Second // how long a process may take to be gone that was killed, on a machine that is busy
	orphansEvery = 50 * time.Millisecond
)

// lockLeft takes the lock from what a killed castle has left behind and what cannot end by itself: providers whose OpenTofu is dead, which nothing
// tells of that, and gates within a layer which nobody applies any more. A Terragrunt or an OpenTofu without its castle is at work, and
// the lock stays theirs; but one that was killed with its castle may still be there for a moment.
func lockLeft(name string) (unlock func() error, err error) {
	for end := time.Now().Add(orphansEnd); ; {
		holders, err := filelock.Holders(name)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(holders, castle) {
			return nil, filelock.ErrHeld
		}
		if !slices.ContainsFunc(holders, func(process filelock.Process) bool { return !orphan(process) }) {
			for _, process := range holders {
				if err := process.Kill(); err != nil {
					return nil, err
				}
			}
		}
		unlock, err = filelock.TryWithChildren(name)
		if !errors.Is(err, filelock.ErrHeld) || time.Now().After(end) {
			return unlock, err
		}
		time.Sleep(orphansEvery)
	}
}

// program is castle's, of which runs and gates within a layer are commands.
const program = "castle-cluster"

// orphan tells whether a holder of the lock is only ever at work for others that hold it, too.
func orphan(process filelock.Process) bool {
	if strings.HasPrefix(process.Program, "terraform-provider-") {
		return true
	}
	return isGate(process)
}

// castle tells whether a process is a run itself, and not a gate within a layer.
func castle(process filelock.Process) bool { return process.Program == program && !isGate(process) }

func isGate(process filelock.Process) bool {
	return process.Program == program && len(process.Args) > 1 && process.Args[1] == "wait"
}
