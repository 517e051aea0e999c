package run

import (
	"context"
	"time"

	"tazlab.net/castle/ci/cluster/config"
	fluxapi "tazlab.net/castle/ci/cluster/flux"
)

// apiLookTime is how long the API may take to say that it is ready, before nothing is asked of it.
const apiLookTime = 5 * time.Second

// FitsLockdown fails where the description wants Flux's multi-tenancy lockdown, Flux runs without, and something that it applies could not
// go on. An API that does not answer is not asked: the layer looks again before Flux changes.
func (c *Cluster) FitsLockdown(ctx context.Context, access *Access) error {
	if c.Description.GitOps.Tenancy != config.TenancyMulti {
		return nil
	}
	client, err := access.API()
	if err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, apiLookTime)
	defer cancel()
	if client.Ready(bounded) != nil {
		return ctx.Err()
	}
	problems, err := fluxapi.AgainstLockdown(ctx, client)
	if err != nil {
		return err
	}
	return fluxapi.LockdownRefused(problems)
}
