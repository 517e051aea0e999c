package run

import (
	"context"
	"time"

	"tazlab.net/castle/ci/cluster/hypervisor"
)

// patience is how often the machines are created, changed or destroyed: what a task of theirs meets of Proxmox's locks, the provider does
// not try again.
var patience = hypervisor.Patience{Tries: 4, Pause: 5 * time.Second}

// Patiently does something with the machines, and does it again where only a mood of Proxmox's was in the way.
func Patiently(ctx context.Context, do func(again bool) error) error {
	again := false
	return patience.Outlast(ctx, hypervisor.Passes, func() error {
		defer func() { again = true }()
		return do(again)
	})
}
