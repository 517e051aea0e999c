package run

import (
	"errors"
	"sync"

	"tazlab.net/castle/ci/cluster/gates"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/talos"
	"tazlab.net/castle/ci/cluster/timeline"
)

// notes are events of a cluster that work in progress notes down. What could not be noted is an error at the end of that work, and not in
// the middle of it.
type notes struct {
	cluster string
	log     *timeline.Log

	mutex sync.Mutex // machines come up at the same time
	err   error
}

func (n *notes) append(event timeline.Event) {
	event.Cluster = n.cluster
	err := n.log.Append(event)
	n.mutex.Lock()
	defer n.mutex.Unlock()
	n.err = errors.Join(n.err, err)
}

// noted is why events could not be noted, if some could not.
func (n *notes) noted() error {
	n.mutex.Lock()
	defer n.mutex.Unlock()
	return n.err
}

// gate notes the conditions of a layer's gate.
func (n *notes) gate(layer string) func(gates.Event) {
	return func(event gates.Event) {
		if event.Condition != "" {
			n.append(event.Record(layer))
		}
	}
}

// machine notes a step of bringing machines up.
func (n *notes) machine(event talos.Event) {
	name := event.Step
	if event.Step == talos.StepMachine { // one for each node; the others are the cluster's
		name = event.Node
	}
	n.append(timeline.Event{Time: event.Time, Kind: timeline.KindStep, Layer: layers.Platform, Name: name,
		Phase: event.Phase, Result: event.Result, Cause: event.Cause})
}
