package hypervisor

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/cenkalti/backoff/v5"

	"tazlab.net/castle/ci/base/retrying"
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
	attempts, until := 0, time.Now().Add(time.Duration(p.Tries)*p.Pause)
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		attempts++
		err := do()
		// What was done says more about an interruption than the context.
		if err != nil && (ctx.Err() != nil || !passes(err)) {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(backoff.NewConstantBackOff(p.Pause)), backoff.WithMaxTries(p.Tries), backoff.WithMaxElapsedTime(0),
		backoff.WithNotify(func(err error, pause time.Duration) {
			retrying.Say(ctx, retrying.Notice{Doing: "a task of Proxmox", Attempts: attempts, Seen: err.Error(), Pause: pause, Until: until})
		}))
	if permanent, is := errors.AsType[*backoff.PermanentError](err); is { // of the last try, which Retry hands over as it is
		return permanent.Unwrap()
	}
	return err
}
