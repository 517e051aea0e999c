package hypervisor

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"tazlab.net/castle/ci/base/retry"
)

// Passes tells of an error that the same request may not meet again: another task of the VM's, or of its storage's, holds Proxmox's lock on it
// (qemu-server, PVE::AbstractConfig::lock_config; PVE::Storage, cluster_lock_storage), or its proxy has no worker free (pve-http-server, 595 and 596).
func Passes(err error) bool {
	text := err.Error()
	return slices.ContainsFunc([]string{"can't lock file", "got lock timeout", "got lock request timeout", "HTTP 595", "HTTP 596"}, func(mood string) bool {
		return strings.Contains(text, mood)
	})
}

// Patience is how often something is done in all, and the pause before each time but the first.
type Patience struct {
	Tries uint
	Pause time.Duration
}

// Outlast does something, and does it again where its error is one that passes.
func (p Patience) Outlast(ctx context.Context, passes func(error) bool, do func() error) error {
	policy := retry.Policy{Doing: "a task of Proxmox", Pauses: backoff.NewConstantBackOff(p.Pause), Tries: p.Tries}
	return policy.Do(ctx, func() error {
		err := do()
		// What was done says more about an interruption than the context.
		if err != nil && (ctx.Err() != nil || !passes(err)) {
			return retry.Permanent(err)
		}
		return err
	})
}
