package create

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"tazlab.net/castle/ci/cluster/adminconfig"
	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/secrets"
	"tazlab.net/castle/ci/cluster/talos/machineconfig"
	"tazlab.net/castle/ci/cluster/timeline"
)

// credential is what people reach a cluster with, as it is kept in Infisical.
type credential struct {
	name, what string
	judge      func(text string, described *config.Cluster, bundle *machineconfig.Bundle, now time.Time) error
	early      bool // it can be had before the cluster is there
	get        func(context.Context) ([]byte, error)
}

// keeper keeps credentials once the cluster's API answers.
type keeper struct {
	record      *run.Record
	description *config.Cluster
	access      *run.Access
	credentials []credential
}

// keepCredentials keeps an administrator's kubeconfig and talosconfig in Infisical as soon as the layer platform is up, beside the
// layers that come after it. What is there and opens the cluster stays. The function that it returns is called when the layers have
// ended; it waits, and its error is nil where the platform is not up.
func (c *creation) keepCredentials(ctx context.Context) (ended func() error) {
	if !c.cluster.Description.Secrets.Infisical.Has() {
		return func() error { return nil }
	}
	return c.keeper().start(ctx)
}

func (c *creation) keeper() *keeper {
	cluster, record, access := c.cluster, c.record, c.access
	return &keeper{record: record, description: cluster.Description, access: access, credentials: []credential{
		{secrets.AdminKubeconfig, "kubeconfig", adminconfig.JudgeKubeconfig, false, func(ctx context.Context) ([]byte, error) {
			return adminconfig.Kubeconfig(ctx, cluster, access)
		}},
		{secrets.AdminTalosconfig, "talosconfig", adminconfig.JudgeTalosconfig, true, func(context.Context) ([]byte, error) {
			return adminconfig.Talosconfig(cluster, access)
		}},
	}}
}

// ahead keeps what needs no machine before the first one is made, where this run has kept nothing yet: whether the identity may write, and
// whether its changes wait for an approval, is told by no permission that it could look at, and would be found out when the cluster is up.
func (k *keeper) ahead(ctx context.Context) error {
	if k.access.Values.Kept() {
		return nil
	}
	for _, credential := range k.credentials {
		if !credential.early {
			continue
		}
		if _, err := k.kept(ctx, credential); err != nil {
			return fmt.Errorf("no machine was made, since the %s of cluster %s is not kept: %w", credential.what, k.description.Name, err)
		}
	}
	return nil
}

// start begins when the layer platform has come to a good end. Where it fails, it may be applied again.
func (k *keeper) start(ctx context.Context) (ended func() error) {
	keep := sync.OnceValue(func() error { return k.keep(ctx) })
	var wait sync.WaitGroup
	var up atomic.Bool
	k.record.Log.Watch(func(event timeline.Event) {
		if event.Kind == timeline.KindLayer && event.Layer == layers.Platform && event.Phase == timeline.PhaseEnd && event.Result == timeline.ResultOK {
			up.Store(true)
			wait.Go(func() { _ = keep() })
		}
	})
	return func() error {
		wait.Wait()
		if !up.Load() || ctx.Err() != nil {
			return nil // the run tells of an interruption, and the next one keeps them
		}
		return keep()
	}
}

// keep keeps all credentials, each as a step of its own.
func (k *keeper) keep(ctx context.Context) error {
	var failures []error
	for _, credential := range k.credentials {
		if err := k.one(ctx, credential); err != nil {
			failures = append(failures, fmt.Errorf("the API of cluster %s answers, but its %s is not kept: %w", k.description.Name, credential.what, err))
		}
	}
	return errors.Join(failures...)
}

func (k *keeper) one(ctx context.Context, c credential) error {
	step := timeline.Event{Kind: timeline.KindStep, Cluster: k.description.Name, Layer: layers.Platform, Name: c.what + " in Infisical", Phase: timeline.PhaseStart}
	noted := k.record.Log.Append(step)
	step.Phase, step.Result = timeline.PhaseEnd, timeline.ResultOK
	result, err := k.kept(ctx, c)
	switch {
	case err != nil:
		step.Result, step.Cause = timeline.ResultFailed, err.Error()
	case result == secrets.KeptUnchanged:
		step.Result = timeline.ResultUnchanged
	}
	return errors.Join(err, noted, k.record.Log.Append(step))
}

func (k *keeper) kept(ctx context.Context, c credential) (result string, err error) {
	if there, has := k.access.Values.Get(c.name); has && c.judge(there, k.description, k.access.Bundle, time.Now()) == nil {
		return secrets.KeptUnchanged, nil
	}
	text, err := c.get(ctx)
	if err != nil {
		return "", err
	}
	return k.access.Values.Keep(ctx, c.name, string(text))
}
