package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/gates"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/timeline"
)

// Hook is a command that a layer's module calls, a gate within the layer: it finds in its environment what the run gave to the layer's OpenTofu.
type Hook struct {
	description *config.Cluster
	events      string // file of the event log
	notes              // what fails to be noted fails the hook at its end
}

// OpenHook reads the environment.
func OpenHook() (*Hook, error) {
	LearnEnvironment()

	described, events := os.Getenv(config.Variable), os.Getenv(VariableEvents)
	if described == "" || events == "" {
		return nil, fmt.Errorf("%s and %s are not set: this command is called by the layers, within castle-cluster create", config.Variable, VariableEvents)
	}
	description, err := config.Handed(described)
	if err != nil {
		return nil, err
	}
	log, err := timeline.Open(events)
	if err != nil {
		return nil, err
	}
	return &Hook{description: description, events: events, notes: notes{cluster: description.Name, log: log}}, nil
}

// Close closes the event log.
func (h *Hook) Close() error { return h.log.Close() }

// Wait waits for a gate within a layer and notes each of its conditions.
func (h *Hook) Wait(ctx context.Context, gate string, timeout time.Duration) error {
	client, err := kube.FromEnv(os.Getenv)
	if err != nil {
		return err
	}
	env := gates.Env{Kube: client, Cluster: h.description, Scaled: os.Getenv(VariableScaled) != ""}
	layer := layers.OfGate(gate).Name
	ctx, stop := h.whileAwaited(ctx, layer)
	defer stop()
	err = gates.Run(ctx, gate, env, gates.Options{Timeout: timeout, Events: h.gate(layer)})
	return errors.Join(err, h.noted())
}
