package run

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/cluster/description"
	"tazlab.net/castle/ci/cluster/gates"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/rollout"
	"tazlab.net/castle/ci/cluster/secrets"
	"tazlab.net/castle/ci/cluster/timeline"
)

// Rollouts waits for what a cluster rolls out. It changes nothing but to ask Flux to look now.
type Rollouts struct {
	// Cluster is the cluster's name, empty where only a kubeconfig is known.
	Cluster string

	kube     *kube.Client
	out      io.Writer // step lines
	redactor *redact.Redactor
}

// Rollouts gets access to the cluster's API as create does: with an administrator's certificate made in memory. Of c it
// needs Folder, AgeKey and Out.
func (c *Cluster) Rollouts(ctx context.Context) (*Rollouts, error) {
	description, err := description.Load(c.Folder)
	if err != nil {
		return nil, err
	}
	values, err := secrets.Resolve(ctx, description, secrets.Inputs{Folder: c.Folder, AgeKey: c.AgeKey})
	if err != nil {
		return nil, err
	}
	text, has := values.Get(secrets.TalosSecrets)
	if !has {
		return nil, fmt.Errorf("cluster %s was never created: Infisical holds no %s for it; dagger call create --cluster %s makes it",
			description.Name, secrets.TalosSecrets, description.Name)
	}
	known, err := newAccess(description, values, text)
	if err != nil {
		return nil, err
	}
	client, err := kube.Connect(known.Kube.Host, known.Kube.CA, known.Kube.Cert, known.Kube.Key)
	if err != nil {
		return nil, err
	}
	return &Rollouts{Cluster: description.Name, kube: client, out: c.Out, redactor: redact.New(known.Secret()...)}, nil
}

// RolloutsByKubeconfig gets access with a kubeconfig, given as its text; out takes step lines.
func RolloutsByKubeconfig(text string, out io.Writer) (*Rollouts, error) {
	client, err := kube.FromKubeconfig([]byte(text))
	if err != nil {
		return nil, err
	}
	return &Rollouts{kube: client, out: out, redactor: redact.New(text)}, nil
}

// Wait is gates.WaitRollout on the cluster, with a line for each step.
func (r *Rollouts) Wait(ctx context.Context, wanted rollout.Wanted, timeout time.Duration) (rollout.Seen, error) {
	steps := timeline.NewSteps(r.out, timeline.Redacting(r.redactor))
	var mutex sync.Mutex
	done := make(chan struct{})
	var ticking sync.WaitGroup
	ticking.Go(func() {
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case now := <-ticker.C:
				mutex.Lock()
				steps.Tick(now)
				mutex.Unlock()
			}
		}
	})
	seen, err := rollout.Wait(ctx, r.kube, wanted, gates.Options{Timeout: timeout, Events: func(event gates.Event) {
		if event.Condition == "" || event.Err != nil { // the error comes back, and is told by who asked
			return
		}
		mutex.Lock()
		defer mutex.Unlock()
		steps.Show(gateEvent("rollout", event))
	}})
	close(done)
	ticking.Wait()
	return seen, err
}
