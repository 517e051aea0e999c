package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"tazlab.net/castle/ci/cluster/description"
	"tazlab.net/castle/ci/cluster/gates"
	"tazlab.net/castle/ci/cluster/hypervisor"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/environment"
	"tazlab.net/castle/ci/cluster/layers/providers"
	"tazlab.net/castle/ci/cluster/layers/releases"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/talos"
	"tazlab.net/castle/ci/cluster/talos/machineconfig"
	"tazlab.net/castle/ci/cluster/timeline"
)

// Hook is a command that a layer's hook calls: it finds in its environment what the run gave it, and asks for its
// layer's secrets.
type Hook struct {
	description *description.Cluster
	events      string // file of the event log
	notes              // what fails to be noted fails the hook at its end
}

// OpenHook reads the environment, and asks the run for the secrets of the layer's hooks where Terragrunt is the
// parent. Hooks that OpenTofu and its providers call have the layer's environment, and no more.
func OpenHook(layer string) (*Hook, error) {
	given, err := environment.Ask(environment.Request{Layer: layer, Hook: true})
	if err != nil {
		return nil, err
	}
	for _, entry := range given {
		name, value, _ := strings.Cut(entry, "=")
		if err := os.Setenv(name, value); err != nil { // in this process's memory: /proc shows what it began with
			return nil, err
		}
	}
	LearnEnvironment()

	described, events := os.Getenv(description.Variable), os.Getenv(VariableEvents)
	if described == "" || events == "" {
		return nil, fmt.Errorf("%s and %s are not set: this command is called by the layers' hooks, within castle-cluster create", description.Variable, VariableEvents)
	}
	description, err := description.Handed(described)
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

// LayerStarts notes that a layer starts and with which providers, which have not run yet, and looks once more whose the machines
// are that it is about to change.
func (h *Hook) LayerStarts(ctx context.Context, layer string) error {
	if err := h.layer(layer, timeline.PhaseStart, ""); err != nil {
		return err
	}
	if err := providers.Note(providers.LockFile, os.Getenv(VariableState)); err != nil || layer != layers.Platform || !h.description.MakesMachines() {
		return err
	}
	machines, err := h.hypervisor()
	if err != nil {
		return err
	}
	var known map[string]int
	if one := os.Getenv(variableOneNode); one != "" {
		if err := json.Unmarshal([]byte(one), &known); err != nil {
			return fmt.Errorf("%s: %w", variableOneNode, err)
		}
	}
	defer machines.Close()
	begun, err := h.states().Begun(ctx)
	if err != nil {
		return err
	}
	return machines.CheckOwned(ctx, begun, known)
}

// hypervisor is the cluster's Proxmox, to be closed when done.
func (h *Hook) hypervisor() (*hypervisor.Hypervisor, error) {
	roots, err := handedRoots()
	if err != nil {
		return nil, err
	}
	return hypervisor.Open(h.description, roots, os.Getenv(variableProxmoxToken)), nil
}

// copyLimit bounds the copying of a state.
const copyLimit = time.Minute

// LayerEnds notes that a layer is done, and keeps a copy of its state. That this one could not be made is noted, too, and fails
// nothing.
func (h *Hook) LayerEnds(ctx context.Context, layer string) error {
	ctx, cancel := context.WithTimeout(ctx, copyLimit)
	defer cancel()
	if err := h.states().Copy(ctx, layer, time.Now()); err != nil {
		h.append(timeline.Event{Kind: timeline.KindStep, Layer: layer, Name: "copy of the state", Phase: timeline.PhaseEnd, Result: timeline.ResultFailed, Cause: err.Error()})
	}
	return h.layer(layer, timeline.PhaseEnd, timeline.ResultOK)
}

// LayerFails notes that a layer failed; the cause comes later, out of the tools' output. A state that OpenTofu could not write where
// it belongs is in the folder that this is called in, and is kept for the next run.
func (h *Hook) LayerFails(layer string) error {
	err := state.Rescue(state.ErroredFile, os.Getenv(VariableState), layer)
	return errors.Join(h.layer(layer, timeline.PhaseEnd, timeline.ResultFailed), err)
}

// states are the layers' states, for copies of them and what is noted beside them: nothing can be decrypted here.
func (h *Hook) states() state.Store {
	return state.Store{
		Cluster: h.description, Folder: os.Getenv(VariableState),
		Bucket: state.Bucket(h.description, os.Getenv(variableAccessKey), os.Getenv(variableSecretKey)),
	}
}

func (h *Hook) layer(layer, phase, result string) error {
	h.append(timeline.Event{Kind: timeline.KindLayer, Layer: layer, Phase: phase, Result: result})
	return h.noted()
}

// hookLimit bounds all that a hook asks the API for, which is away for a while when its server restarts.
const hookLimit = 2 * time.Minute

// FreeRelease frees the layer's Helm release where an interrupted run left it in the middle of an operation, and notes that as
// a step.
func (h *Hook) FreeRelease(ctx context.Context, layer string) error {
	release := layers.Named(layer).Release
	if release == (layers.Release{}) {
		return nil
	}
	client, err := kube.FromEnv(os.Getenv)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, hookLimit)
	defer cancel()
	freed, err := releases.Free(ctx, client, release)
	step := timeline.Event{Kind: timeline.KindStep, Layer: layer, Name: "Helm release " + release.Name}
	for _, record := range freed {
		step.Phase, step.Cause = timeline.PhaseStart, ""
		h.append(step)
		step.Phase, step.Cause = timeline.PhaseWaiting, fmt.Sprintf("an interrupted run left revision %d %s at %s", record.Revision, record.Status, record.Since.UTC().Format(time.TimeOnly))
		h.append(step)
		step.Phase, step.Result, step.Cause = timeline.PhaseEnd, timeline.ResultOK, ""
		h.append(step)
	}
	return errors.Join(err, h.noted())
}

// Wait waits for a gate and notes each of its conditions.
func (h *Hook) Wait(ctx context.Context, gate string, timeout time.Duration) error {
	client, err := kube.FromEnv(os.Getenv)
	if err != nil {
		return err
	}
	env := gates.Env{Kube: client, Cluster: h.description, Scaled: os.Getenv(VariableScaled) != ""}
	if gate == layers.Platform {
		bundle, err := machineconfig.ParseSecrets([]byte(os.Getenv(VariableTalosSecrets)))
		if err != nil {
			return err
		}
		machines, err := talos.Dial(h.description, bundle, talos.Options{})
		if err != nil {
			return err
		}
		defer machines.Close()
		env.Talos = Quorum{machines}
	}
	layer := layers.OfGate(gate).Name
	ctx, stop := h.whileAwaited(ctx, layer)
	defer stop()
	err = gates.Run(ctx, gate, env, gates.Options{Timeout: timeout, Events: func(event gates.Event) {
		if event.Condition == "" {
			return
		}
		h.append(event.Record(layer))
	}})
	return errors.Join(err, h.noted())
}

// Quorum is the machines as the gates look at them.
type Quorum struct{ Machines *talos.Access }

// EtcdQuorum says what etcd's members are, and whether that is all of them.
func (q Quorum) EtcdQuorum(ctx context.Context) (string, bool, error) {
	seen, err := q.Machines.EtcdQuorum(ctx)
	if err != nil {
		return "", false, err
	}
	return seen.String(), seen.Complete(), nil
}

// TalosUp configures the machines and bootstraps etcd, and notes each step. Where the run does so ahead, it waits for the end of that.
func (h *Hook) TalosUp(ctx context.Context) error {
	if done, err := broughtUp(ctx, os.Getenv(variableAhead)); done || err != nil {
		return err
	}
	bundle, err := machineconfig.ParseSecrets([]byte(os.Getenv(VariableTalosSecrets)))
	if err != nil {
		return err
	}
	// From here on the machines hold data, and none of them is a leftover any more.
	if err := h.states().ForgetUnfinished(ctx); err != nil {
		return err
	}
	options := talos.Options{Event: h.machine}
	if h.description.MakesMachines() {
		machines, err := h.hypervisor()
		if err != nil {
			return err
		}
		defer machines.Close()
		options.UUID = machines.UUID
	}
	_, err = talos.Up(ctx, h.description, bundle, options)
	return errors.Join(err, h.noted())
}
