package run

import (
	"context"
	"time"

	"tazlab.net/castle/ci/cluster/hypervisor"
)

const (
	// tries is how often the machines are created, changed or destroyed: what a task of theirs meets of Proxmox's locks, the provider does
	// not try again.
	tries      = 4
	pauseAfter = 5 * time.Second
)

// Patiently does something with the machines, and does it again where only a mood of Proxmox's was in the way.
func Patiently(ctx context.Context, do func(again bool) error) error {
	for try := 1; ; try++ {
		err := do(try > 1)
		if err == nil || try == tries || ctx.Err() != nil || !hypervisor.Passes(err) {
			return err
		}
		select {
		case <-time.After(pauseAfter):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
