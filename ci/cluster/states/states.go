// Package states is what a person does with the layers' states: look at them, free a lock, go back to a copy, take them elsewhere. What
// changes one was named first, and no run of this folder goes on beside it.
package states

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/run"
)

// States are what there is of a cluster's states.
type States struct {
	Cluster string  `json:"cluster"`
	Backend string  `json:"backend"`
	Layers  []Layer `json:"layers"`
	Locks   []Lock  `json:"locks"`
}

// Layer is the state of one layer.
type Layer struct {
	Name string `json:"name"`
	// Resources are the addresses of what it holds; nil where there is no state.
	Resources []string `json:"resources"`
	// Copies are the times of its copies, the oldest first, by which they are restored.
	Copies []string `json:"copies"`
	// Problem is why the state could not be read.
	Problem string `json:"problem,omitempty"`
}

// Lock is one that is held.
type Lock struct {
	ID    string    `json:"id"`
	Layer string    `json:"layer,omitempty"` // empty: the whole cluster
	Who   string    `json:"who"`
	Doing string    `json:"doing"`
	Since time.Time `json:"since"`
}

// List looks, and changes nothing.
func List(ctx context.Context, cluster *run.Cluster) (*States, error) {
	_, store, err := cluster.OpenStates(ctx)
	if err != nil {
		return nil, err
	}
	found := &States{Cluster: cluster.Description.Name, Backend: cluster.Description.State.Backend, Locks: []Lock{}}
	var without []string
	for _, layer := range layers.Without(cluster.Description) {
		without = append(without, layer.Name)
	}
	for _, layer := range layers.All {
		seen := Layer{Name: layer.Name}
		if seen.Resources, err = store.Resources(ctx, layer.Name); err != nil {
			seen.Problem = err.Error()
		}
		if seen.Copies, err = store.Copies(ctx, layer.Name); err != nil {
			return nil, err
		}
		if seen.Resources == nil && len(seen.Copies) == 0 && seen.Problem == "" && slices.Contains(without, layer.Name) {
			continue
		}
		found.Layers = append(found.Layers, seen)
	}
	held, err := store.Locks(ctx)
	if err != nil {
		return nil, err
	}
	for _, lock := range held {
		found.Locks = append(found.Locks, Lock{ID: lock.ID, Layer: lock.Layer, Who: lock.Who, Doing: lock.Operation, Since: lock.Created})
	}
	return found, nil
}

// Text is for a person.
func (s *States) Text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "states of cluster %s (%s)\n\n", s.Cluster, s.Backend)
	for _, layer := range s.Layers {
		what := rendering.Count(len(layer.Resources), "resource")
		switch {
		case layer.Problem != "":
			what = layer.Problem
		case layer.Resources == nil:
			what = "no state"
		}
		fmt.Fprintf(&out, "  %-11s %s%s\n", layer.Name, what, copies(layer.Copies))
	}
	for i, lock := range s.Locks {
		if i == 0 {
			out.WriteString("\n")
		}
		held := state.Lock{ID: lock.ID, Layer: lock.Layer, Operation: lock.Doing, Who: lock.Who, Created: lock.Since}
		fmt.Fprintln(&out, held)
	}
	return out.String()
}

func copies(list []string) string {
	switch len(list) {
	case 0:
		return ""
	case 1:
		return ", a copy of " + list[0]
	default:
		return fmt.Sprintf(", %d copies from %s to %s", len(list), list[0], list[len(list)-1])
	}
}

// Markdown is the same for a job's summary.
func (s *States) Markdown() string { return rendering.Block("text", s.Text()) }

// Unlock removes the lock whose ID was typed, and tells which that was. It is refused while a run of this folder goes on, which would
// be the holder.
func Unlock(ctx context.Context, cluster *run.Cluster, id string) (string, error) {
	var freed state.Lock
	err := byItself(ctx, cluster, func(_ *run.Access, store state.Store) (err error) {
		freed, err = store.Unlock(ctx, id)
		return err
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s: removed\n", freed), nil
}

// Restore puts the copy of a layer's state in its place that was made at the given time; the state that is there becomes a copy.
// confirm is the cluster's name.
func Restore(ctx context.Context, cluster *run.Cluster, layer, at, confirm string) (string, error) {
	if err := known(layer); err != nil {
		return "", err
	}
	if err := confirmed(cluster, "state-restore goes back to an older state of layer "+layer, confirm); err != nil {
		return "", err
	}
	err := alone(ctx, cluster, "state-restore", func(store state.Store) error {
		return store.Restore(ctx, layer, at, time.Now())
	})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("the state of layer %s is that of %s; create takes up what the world has beyond it\n", layer, at), nil
}

// known refuses what is no layer.
func known(layer string) error {
	if layers.Named(layer).Folder == "" {
		return fmt.Errorf("there is no layer %q", layer)
	}
	return nil
}

// alone works on the states while nobody else does, here or on another machine.
func alone(ctx context.Context, cluster *run.Cluster, command string, do func(state.Store) error) error {
	return byItself(ctx, cluster, func(access *run.Access, store state.Store) error {
		return locked(ctx, cluster, access, store, command, func() error { return do(store) })
	})
}

// byItself works on the states while no run of the same folder does.
func byItself(ctx context.Context, cluster *run.Cluster, do func(*run.Access, state.Store) error) error {
	access, store, err := cluster.OpenStates(ctx)
	if err != nil {
		return err
	}
	unlock, err := cluster.Lock()
	if err != nil {
		return err
	}
	return errors.Join(do(access, store), unlock())
}
