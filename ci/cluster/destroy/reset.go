package destroy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/talos"
)

// answerLimit is how long a machine may be silent before it counts as one that cannot be reached.
const answerLimit = 30 * time.Second

// giveBack empties the cluster and has its machines reset themselves. Each has to answer with the cluster's own PKI for that; one that does
// not is left as it is, and named.
func (d *destruction) giveBack(ctx context.Context) error {
	states, err := d.states.VMs(ctx)
	if err != nil {
		return err
	}
	left, err := d.inCluster(ctx)
	if err != nil {
		return err
	}
	nodes, machines, err := d.Machines(states)
	if err != nil {
		return err
	}
	defer machines.Close()
	fates, failures := make([]fate, len(nodes)), make([]error, len(nodes))
	var wait sync.WaitGroup
	for i, node := range nodes {
		wait.Go(func() {
			failures[i] = d.LayerStep(layers.Platform, "reset "+node.Name, func(tell func(string)) (did bool, err error) {
				fates[i], err = giveBackOne(ctx, machines, node, tell)
				return fates[i] == reset, err
			})
		})
	}
	wait.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	// The state of the layer platform is all that knows of a machine which cluster.yaml does not list any more.
	var unlisted []string
	for i, node := range nodes {
		if _, listed := d.described.Node(node.Name); failures[i] != nil && !listed {
			unlisted = append(unlisted, node.Name)
		}
	}
	if len(unlisted) > 0 {
		failures = append(failures, fmt.Errorf("cluster.yaml does not list %s any more, so the states of %s and %s are kept, which know of them",
			strings.Join(unlisted, ", "), layers.Secrets, layers.Platform))
		return d.Failure(ctx, errors.Join(failures...))
	}
	beneath := append([]layers.Layer{layers.Named(layers.Secrets), layers.Named(layers.Platform)}, left...)
	if err := d.machines(ctx, beneath); err != nil {
		return errors.Join(append(failures, err)...)
	}
	held, err := d.statesLeft(ctx)
	if err != nil {
		return err
	}
	free := 0
	for i, node := range nodes {
		switch {
		case failures[i] != nil:
		case fates[i] == foreign:
			d.notes = append(d.notes, fmt.Sprintf("%s (%s) was left as it is: it answers with another PKI than the cluster's", node.Name, node.Address))
		default:
			free++
		}
	}
	d.notes = append(d.notes, fmt.Sprintf("looked up: the states of all %d layers are empty, and of %s %d in maintenance mode",
		len(layers.All), rendering.Count(len(nodes), "machine"), free))
	if err := errors.Join(append(held, failures...)...); err != nil {
		return d.Failure(ctx, err)
	}
	return nil
}

// fate is what became of a machine.
type fate int

const (
	waiting fate = iota // it was in maintenance mode already
	reset
	foreign
)

// giveBackOne has one machine reset itself, if it is the cluster's, and waits until it has.
func giveBackOne(ctx context.Context, machines machines, node config.Node, tell func(string)) (fate, error) {
	for end := time.Now().Add(answerLimit); ; {
		seen, err := machines.StatusOf(ctx, node.Name)
		switch {
		case err != nil:
			return waiting, err
		case seen.State == talos.InMaintenance:
			return waiting, nil
		case seen.State == talos.IsGhost:
			tell(seen.Problem)
			return foreign, nil
		case seen.State == talos.IsConfigured:
			if err := machines.GiveBack(ctx, node.Name, false); err != nil {
				return reset, err
			}
			return reset, machines.AwaitMaintenance(ctx, node.Name, talos.GiveBackLimit, tell)
		case time.Now().After(end):
			return waiting, fmt.Errorf("%s (%s) was left as it is, with the cluster's keys and data if it has any: it %s. Destroy again when it answers, or wipe it at its console",
				node.Name, node.Address, seen.Problem)
		}
		tell(seen.Problem)
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return waiting, ctx.Err()
		}
	}
}
