// Package create brings a cluster up, or on from where an earlier run ended: its secrets, while what the cluster stands on is looked at,
// then all layers, while the machines pull the layers' images ahead, and its administrator's credentials into Infisical. It leaves alone
// what is there and as described.
package create

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/charts"
	"tazlab.net/castle/ci/cluster/layers/providers"
	"tazlab.net/castle/ci/cluster/preflight"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/secrets"
	"tazlab.net/castle/ci/cluster/timeline"
)

// Options say how.
type Options struct {
	// PullAhead has the machines pull the layers' images as soon as they run.
	PullAhead bool
	// AllowReplace are nodes, typed by name, whose VMs may be removed or replaced where the description says so.
	AllowReplace []string
	// RemoveLayers are layers, typed by name, that the description has no more and that may be removed.
	RemoveLayers []string
}

// Execute brings the cluster up, or on from where an earlier run ended: what is there and as described is left alone.
func Execute(ctx context.Context, cluster *run.Cluster, options Options) (*run.Result, error) {
	if err := cluster.LoadForLayers(); err != nil {
		return nil, err
	}
	if len(options.AllowReplace) > 0 && !cluster.Description.MakesMachines() {
		return nil, fmt.Errorf("--allow-replace is for machines that castle makes, and those of platform %s are there already: have %s leave with remove-node, also where its machine does not answer any more",
			cluster.Description.Platform, strings.Join(options.AllowReplace, ", "))
	}
	return cluster.Execute(ctx, "create", func(ctx context.Context, record *run.Record) error {
		c := &creation{Options: options, cluster: cluster, record: record}
		defer c.close()
		return c.execute(ctx)
	})
}

// creation is one run of the verb.
type creation struct {
	Options
	cluster *run.Cluster
	record  *run.Record
	access  *run.Access // what the secrets give access to

	unwanted []layers.Layer // that are removed
	fresh    bool           // all machines are to be made
	verified func()         // ends what the tools know of Proxmox's certificate
}

func (c *creation) close() {
	if c.verified != nil {
		c.verified()
	}
}

// execute takes all steps. Rerun create to resume after one that fails.
func (c *creation) execute(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		c.checkDownloads, c.openSecrets, c.verifyProxmox, c.checkUnwanted, c.prepareMachines, c.removeUnwanted, c.applyLayers,
	} {
		if err := step(ctx); err != nil {
			if errors.As(err, new(*run.Failure)) {
				return err
			}
			return c.cluster.PlatformFailure(ctx, c.record, err)
		}
	}
	return nil
}

// checkDownloads refuses charts and providers that are not what they should be.
func (c *creation) checkDownloads(context.Context) error {
	err := charts.CheckDownloads(c.cluster.Tools.Charts, c.cluster.State)
	if err == nil {
		err = providers.CheckFetched(c.cluster.Tools.Providers, c.cluster.Layers, c.cluster.State)
	}
	if err != nil {
		return &run.Failure{Cause: err.Error(), Resume: "nothing was changed"}
	}
	return nil
}

// openSecrets gets the secrets, and looks meanwhile at what would keep the cluster from coming up.
func (c *creation) openSecrets(ctx context.Context) (err error) {
	c.access, err = c.cluster.SecretsLayer(ctx, c.record, true, func(ctx context.Context, values func() *secrets.Values) error {
		return preflight.Blocking(ctx, c.cluster, values, func(row preflight.Row) error {
			return c.record.Log.Append(timeline.Event{
				Kind: timeline.KindStep, Cluster: c.cluster.Description.Name, Layer: layers.Secrets, Name: "check " + row.Group + " " + row.Name,
				Phase: timeline.PhaseEnd, Result: timeline.ResultUnproven, Cause: row.Seen,
			})
		})
	})
	return err
}

// verifyProxmox refuses another certificate than the described one.
func (c *creation) verifyProxmox(ctx context.Context) (err error) {
	c.verified, err = c.cluster.VerifyProxmox(ctx)
	return err
}

// applyLayers applies all layers. Beside that the machines pull images, and the administrator's credentials are kept.
func (c *creation) applyLayers(ctx context.Context) error {
	if c.PullAhead {
		defer c.pullImages(ctx)()
	}
	kept := c.keepCredentials(ctx)
	err := run.Patiently(ctx, func(again bool) error {
		if again { // what that has left half-made is known, and goes first
			if err := c.prepareMachines(ctx); err != nil {
				return c.cluster.PlatformFailure(ctx, c.record, err)
			}
		}
		return c.cluster.Apply(ctx, c.record, c.access, c.fresh)
	})
	return errors.Join(err, c.cluster.NotKept(c.record, kept()))
}
