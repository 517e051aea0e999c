package run

import (
	"errors"

	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/timeline"
)

// Step is LayerStep for the layer platform.
func (r *Record) Step(cluster, name string, do func(tell func(string)) (did bool, err error)) error {
	return r.LayerStep(cluster, layers.Platform, name, do)
}

// LayerStep notes a step of a layer that the run takes itself, beside Terragrunt. do takes it, tells what is seen meanwhile, and
// returns whether there was anything to do.
func (r *Record) LayerStep(cluster, layer, name string, do func(tell func(string)) (did bool, err error)) error {
	event := timeline.Event{Kind: timeline.KindStep, Cluster: cluster, Layer: layer, Name: name, Phase: timeline.PhaseStart}
	if err := r.Log.Append(event); err != nil {
		return err
	}
	var noted error
	last := ""
	did, err := do(func(seen string) {
		if seen == last {
			return
		}
		last = seen
		waiting := event
		waiting.Phase, waiting.Cause = timeline.PhaseWaiting, seen
		noted = errors.Join(noted, r.Log.Append(waiting))
	})
	event.Phase, event.Result = timeline.PhaseEnd, timeline.ResultOK
	switch {
	case err != nil:
		event.Result, event.Cause = timeline.ResultFailed, err.Error()
	case !did:
		event.Result = timeline.ResultUnchanged
	}
	return errors.Join(err, noted, r.Log.Append(event))
}
