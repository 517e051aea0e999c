package destroy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/teardown"
)

const (
	// apiDeadline is how long the API may take to answer before it counts as dead: a virtual IP that moves is away for some seconds.
	apiDeadline = 15 * time.Second
	// patience is how long nothing of the cluster's may go before what holds it counts as dead. A node that is drained of its last pods, or
	// Longhorn's own removal, lets go of something more often by far.
	patience = 45 * time.Second
	// lessPatience is what the rest gets of it once a part was found dead.
	lessPatience = 15 * time.Second
	// interruptedFor is how long tools have to end whose work got nowhere.
	interruptedFor = 5 * time.Second
)

// inCluster removes the layers that are in the cluster. None of it keeps the machines from going: what is not removed there goes with them,
// and is told. left are the layers that hold something that does not live in the cluster, and so has not gone with it.
func (d *destruction) inCluster(ctx context.Context) (left []layers.Layer, err error) {
	there, err := d.holding(ctx)
	if err != nil || len(there) == 0 {
		return nil, err
	}
	var dead []error
	cluster, err := d.API(ctx, apiDeadline)
	if err != nil {
		dead = []error{err}
	} else {
		dead = d.leave(ctx, cluster, there)
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if len(dead) == 0 {
		return nil, nil
	}
	if err := d.release(ctx, there, dead); err != nil {
		return nil, err
	}
	return d.holding(ctx)
}

// holding are the layers in the cluster whose states hold something.
func (d *destruction) holding(ctx context.Context) (there []layers.Layer, err error) {
	for _, layer := range layers.InCluster() {
		resources, err := d.states.Resources(ctx, layer.Name)
		if err != nil {
			return nil, err
		}
		if len(resources) > 0 {
			there = append(there, layer)
		}
	}
	return there, nil
}

// leave empties the cluster and then destroys the layers in it. The errors tell which parts of it are dead.
func (d *destruction) leave(ctx context.Context, cluster contents, there []layers.Layer) (why []error) {
	dead := map[string]bool{}
	left := func() time.Duration {
		if len(why) > 0 {
			return lessPatience
		}
		return patience
	}
	for _, step := range []struct {
		layer, name string
		do          func(context.Context, func(string)) (bool, error)
	}{
		{layers.GitOps, "what Flux applied", cluster.RemoveFlux},
		{layers.Networking, "load balancers", cluster.RemoveLoadBalancers},
		{layers.Storage, "volumes", cluster.RemoveVolumes},
		{layers.Storage, "Longhorn's deletion flag", cluster.LetLonghornGo},
	} {
		layer := step.layer
		if !slices.ContainsFunc(there, func(one layers.Layer) bool { return one.Name == layer }) {
			layer = layers.GitOps // without a layer of castle's, it is what Flux has brought
		}
		err := d.LayerStep(layer, step.name, func(tell func(string)) (did bool, err error) {
			waitsFor := ""
			err = cluster.While(ctx, left(), func(ctx context.Context) (err error) {
				did, err = step.do(ctx, func(seen string) {
					waitsFor = seen
					tell(seen)
				})
				return err
			})
			if stalled, is := errors.AsType[*teardown.Stalled](err); is && waitsFor != "" {
				err = fmt.Errorf("%s stay; %w", waitsFor, stalled)
			}
			return did, err
		})
		if ctx.Err() != nil {
			return []error{err}
		}
		if err != nil {
			dead[step.layer] = true
			why = append(why, fmt.Errorf("%s: %w", step.name, err))
		}
	}
	alive := slices.DeleteFunc(slices.Clone(there), func(layer layers.Layer) bool { return dead[layer.Name] })
	if len(alive) > 0 {
		err := cluster.While(ctx, left(), func(ctx context.Context) error {
			return d.DestroyLayers(ctx, alive, interruptedFor)
		})
		if err != nil {
			why = append(why, err)
		}
	}
	return why
}

// release takes what still is in the cluster out of the states; its machines are going to be removed.
func (d *destruction) release(ctx context.Context, inside []layers.Layer, why []error) error {
	var wait sync.WaitGroup
	failures, notes := make([]error, len(inside)), make([]string, len(inside))
	for i, layer := range inside {
		wait.Go(func() {
			failures[i] = d.LayerStep(layer.Name, "goes with its machines", func(tell func(string)) (bool, error) {
				released, err := d.states.Release(ctx, layer.Name, time.Now())
				if len(released) > 0 {
					tell(strings.Join(released, ", "))
					notes[i] = fmt.Sprintf("  %s: %s", layer.Name, state.Types(released))
				}
				return len(released) > 0, err
			})
		})
	}
	wait.Wait()
	d.notes = append(d.notes, "not removed by itself, but with the machines that it was on:")
	d.notes = append(d.notes, slices.DeleteFunc(notes, func(note string) bool { return note == "" })...)
	d.notes = append(d.notes, "since")
	for _, err := range why {
		d.notes = append(d.notes, "  "+oneLine(err))
	}
	return errors.Join(failures...)
}

func oneLine(err error) string {
	first, _, _ := strings.Cut(err.Error(), "\n")
	return first
}
