package states

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/run"
)

// Migrate moves the states from where they were to where the description has them now. from is "local" or
// "s3://BUCKET?endpoint=URL&region=NAME"; confirm is the cluster's name.
func Migrate(ctx context.Context, cluster *run.Cluster, from, confirm string) (done string, err error) {
	if err := confirmed(cluster, "state-migrate moves the states of this cluster", confirm); err != nil {
		return "", err
	}
	source, err := readPlace(from)
	if err != nil {
		return "", err
	}
	if there := cluster.Description.State; source == there {
		return "", fmt.Errorf("the states of cluster %s are in %s by its description already: write there where they are to be, and give --from where they are", cluster.Description.Name, from)
	}
	err = alone(ctx, cluster, "state-migrate", func(store state.Store) error {
		// The same cluster, as it was described before.
		before, described := *cluster, *cluster.Description
		described.State, before.Description = source, &described
		access, err := before.Resolve(ctx, false)
		if err != nil {
			return err
		}
		old, err := before.States(access)
		if err != nil {
			return err
		}
		if err := another(ctx, store, old); err != nil {
			return err
		}
		return locked(ctx, &before, access, old, "state-migrate", func() error {
			moved, err := store.Move(ctx, old, time.Now())
			done = told("moved", moved, "there is no state in "+from)
			return err
		})
	})
	return done, err
}

// another fails where two stores are one, spelt in two ways: the states would be moved onto themselves and then taken away. It is seen by the lock that
// this call holds in the first of them.
func another(ctx context.Context, store, old state.Store) error {
	mine, err := store.Locks(ctx)
	if err != nil {
		return err
	}
	there, err := old.Locks(ctx)
	if err != nil {
		return err
	}
	for _, lock := range there {
		if slices.ContainsFunc(mine, func(own state.Lock) bool { return own.ID == lock.ID }) {
			return fmt.Errorf("--from is the store that the description of cluster %s names, spelt in another way: nothing was moved; write there where they are to be, and give --from where they are",
				store.Cluster.Name)
		}
	}
	return nil
}

// readPlace reads where states are kept.
func readPlace(text string) (config.State, error) {
	if text == config.StateLocal {
		return config.State{Backend: config.StateLocal}, nil
	}
	place, err := url.Parse(text)
	if err != nil || place.Scheme != "s3" || place.Host == "" || strings.Trim(place.Path, "/") != "" {
		return config.State{}, fmt.Errorf("--from %q is neither %q nor of the form s3://BUCKET?endpoint=URL&region=NAME", text, config.StateLocal)
	}
	query := place.Query()
	state := config.State{Backend: config.StateS3}
	state.S3.Bucket, state.S3.Endpoint, state.S3.Region = place.Host, query.Get("endpoint"), query.Get("region")
	for name := range query {
		if name != "endpoint" && name != "region" {
			return config.State{}, fmt.Errorf("--from %q has %q; known are endpoint and region", text, name)
		}
	}
	return state.Complete(), nil
}

// confirmed reads the description and compares what was typed with the cluster's name.
func confirmed(cluster *run.Cluster, what, confirm string) error {
	if err := cluster.Load(); err != nil {
		return err
	}
	if name := cluster.Description.Name; confirm != name {
		return fmt.Errorf("%s: confirm with --confirm %s", what, name)
	}
	return nil
}

// locked locks the cluster in a store for other machines, too, for as long as something is done.
func locked(ctx context.Context, cluster *run.Cluster, access *run.Access, store state.Store, command string,
	do func() error) error {
	me, err := cluster.Identity(access.Values)
	if err != nil {
		return err
	}
	free, err := cluster.TakeStates(ctx, store, me, command, func(state.Lock) error { return nil })
	if err != nil {
		return err
	}
	return errors.Join(do(), free())
}
