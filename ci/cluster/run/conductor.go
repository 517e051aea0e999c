package run

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/cluster/gates"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/providers"
	"tazlab.net/castle/ci/cluster/layers/releases"
	"tazlab.net/castle/ci/cluster/talos"
	"tazlab.net/castle/ci/cluster/timeline"
)

// walk is what a conductor does.
type walk struct {
	layers  []layers.Layer
	order   layers.Order
	command []string      // of OpenTofu
	node    *OneNode      // for which alone
	fresh   bool          // all machines are to be made
	grace   time.Duration // that the tools have to end when they are interrupted; 0: Terragrunt's
}

func (w walk) applies() bool { return w.command[0] == "apply" }

// Apply applies all layers. Fresh says that all machines are to be made by that: each is configured as soon as it is there, and etcd is
// founded on the first control plane while others are still cloned.
func (c *Cluster) Apply(ctx context.Context, record *Record, access *Access, fresh bool) error {
	return c.conduct(ctx, record, access, walk{
		layers: layers.Of(c.Description), order: layers.ToApply(), command: []string{"apply", "-auto-approve"}, fresh: fresh,
	})
}

// DestroyLayers destroys some layers, in the reverse order of all. grace is how long the tools have to end that are interrupted, as
// terragrunt.Runner has it.
func (c *Cluster) DestroyLayers(ctx context.Context, record *Record, access *Access, which []layers.Layer, grace time.Duration) error {
	whole := *c // also those layers that it does without by now
	whole.Description = c.Description.ForRemoval()
	return whole.conduct(ctx, record, access, walk{
		layers: which, order: layers.ToRemove(), command: []string{"destroy", "-auto-approve"}, grace: grace,
	})
}

// conductor walks the layers: of each it notes the start, does what goes before OpenTofu, runs it, brings the machines up, waits for the
// layer's gate, keeps a copy of its state, and notes the end.
type conductor struct {
	walk
	*Cluster
	record   *Record
	access   *Access
	units    *Units
	machines *bringUp // that come up while others are still made; nil in any other run
	notes

	mutex    sync.Mutex
	awaiting map[string]context.CancelCauseFunc // ends the wait of a layer for its gate
}

func (c *Cluster) conduct(ctx context.Context, record *Record, access *Access, walk walk) (err error) {
	way, err := c.apiForTools(ctx, record, access)
	if err != nil {
		return err
	}
	defer way.Close()
	logs := newLogs(filepath.Join(record.Folder, LogFolder))
	record.logs = logs
	d := &conductor{
		walk: walk, Cluster: c, record: record, access: access, awaiting: map[string]context.CancelCauseFunc{},
		notes: notes{cluster: c.Description.Name, log: record.Log},
	}
	if d.units, err = c.Units(access, way.Environment(), record.Events(), d.write); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.units.Close()) }()
	d.units.runner.Grace = walk.grace
	if walk.fresh {
		d.machines = d.bringUp(ctx)
		defer d.machines.stop()
	}
	outcomes := layers.Walk(ctx, walk.layers, walk.order, d.layer)
	for _, outcome := range outcomes {
		if errors.Is(outcome.Err, layers.ErrSkipped) {
			d.append(timeline.Event{Kind: timeline.KindLayer, Layer: outcome.Layer.Name, Phase: timeline.PhaseEnd,
				Result: timeline.ResultSkipped, Cause: outcome.Err.Error()})
		}
	}
	return errors.Join(d.verdict(ctx, outcomes), logs.close(), d.noted())
}

// verdict names the first layer that failed.
func (d *conductor) verdict(ctx context.Context, outcomes []layers.Outcome) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	for _, outcome := range outcomes {
		if outcome.Failed() {
			return &Failure{Layer: outcome.Layer.Name, Cause: d.cause(outcome.Layer, outcome.Err), Resume: d.resume(d.record.Command), err: outcome.Err}
		}
	}
	return nil
}

// cause is why a layer failed: castle's own error, else what the tools say.
func (d *conductor) cause(layer layers.Layer, err error) string {
	if !errors.As(err, new(*ownError)) {
		if said := d.record.logs.cause(layer.Name); said != "" {
			return said
		}
	}
	return redact.Text(err.Error())
}

// write keeps what the tools print, and sees in it which machines are made.
func (d *conductor) write(unit, message string) {
	if d.machines != nil && layers.OfFolder(unit).Name == layers.Platform {
		d.machines.see(message)
	}
	d.record.logs.write(unit, message)
}

// layer takes one layer through all of its phases.
func (d *conductor) layer(ctx context.Context, layer layers.Layer) error {
	event := timeline.Event{Kind: timeline.KindLayer, Layer: layer.Name, Phase: timeline.PhaseStart}
	d.append(event)
	err := d.phases(ctx, layer)
	event.Phase, event.Result = timeline.PhaseEnd, timeline.ResultOK
	failed := layers.Outcome{Err: err}.Failed()
	switch {
	case failed:
		if errors.As(err, new(*ownError)) {
			d.record.logs.write(layer.Folder, "castle: "+err.Error())
		}
		event.Result, event.Cause = timeline.ResultFailed, d.cause(layer, err)
	case err != nil:
		event.Result, event.Cause = timeline.ResultSkipped, err.Error()
	}
	d.append(event)
	if failed {
		d.failed(layer)
	}
	return err
}

func (d *conductor) phases(ctx context.Context, layer layers.Layer) error {
	// What goes before OpenTofu is looked up while Terragrunt prepares its folder.
	looking, stop := context.WithCancel(ctx)
	defer stop()
	looked := Beside(func() (any, error) { return d.before(looking, layer) })
	err := d.units.run(ctx, layer, func(_ context.Context, folder string) error {
		there, err := looked()
		if err != nil {
			return err
		}
		return errors.Join(providers.Note(filepath.Join(folder, providers.LockFile), d.State), adopt(folder, there))
	}, d.command...)
	stop()
	_, _ = looked() // nothing of it goes on
	if err != nil {
		return err
	}
	if d.applies() && d.node == nil {
		if err := d.after(ctx, layer); err != nil {
			return &ownError{err}
		}
	}
	d.copyState(ctx, layer)
	return nil
}

// Beside does something from now on; what it returns waits for it.
func Beside[T any](do func() (T, error)) (wait func() (T, error)) {
	wait = sync.OnceValues(do)
	go func() { _, _ = wait() }()
	return wait
}

// before looks once more whose the machines are that the layer is about to change, takes up what interrupted runs and lost states left, and
// gives the layer its Secrets. there is what OpenTofu has to import.
func (d *conductor) before(ctx context.Context, layer layers.Layer) (there any, err error) {
	if layer.Name == layers.Platform && d.Description.MakesMachines() {
		if err := d.machinesAreOurs(ctx); err != nil {
			return nil, err
		}
	}
	if !d.applies() {
		return nil, nil
	}
	if err := d.freeRelease(ctx, layer); err != nil {
		return nil, err
	}
	if layer.Name == layers.GitOps && !d.Description.Secrets.Infisical.Has() {
		if err := applyFluxSecrets(ctx, d.access); err != nil {
			return nil, err
		}
	}
	return d.adoption(ctx, d.access, layer.Name)
}

func (d *conductor) machinesAreOurs(ctx context.Context) error {
	var known map[string]int
	if d.node != nil {
		known = map[string]int{d.node.Name: d.node.ID}
	}
	begun, err := d.StateFiles(d.access.Values).Begun(ctx)
	if err != nil {
		return err
	}
	machines := d.Hypervisor(d.access)
	defer machines.Close()
	return machines.CheckOwned(ctx, begun, known)
}

// askLimit bounds all that a layer's preparation asks the API for, which is away for a while when its server restarts.
const askLimit = 2 * time.Minute

// freeRelease frees the layer's Helm release where an interrupted run left it in the middle of an operation, and notes that as a step.
func (d *conductor) freeRelease(ctx context.Context, layer layers.Layer) error {
	if layer.Release == (layers.Release{}) {
		return nil
	}
	client, err := d.access.API()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	freed, err := releases.Free(ctx, client, layer.Release)
	step := timeline.Event{Kind: timeline.KindStep, Layer: layer.Name, Name: "Helm release " + layer.Release.Name}
	for _, record := range freed {
		step.Phase, step.Result, step.Cause = timeline.PhaseStart, "", ""
		d.append(step)
		step.Phase, step.Cause = timeline.PhaseWaiting, fmt.Sprintf("an interrupted run left revision %d %s at %s", record.Revision, record.Status, record.Since.UTC().Format(time.TimeOnly))
		d.append(step)
		step.Phase, step.Result, step.Cause = timeline.PhaseEnd, timeline.ResultOK, ""
		d.append(step)
	}
	return err
}

// after brings the machines up, where the layer is theirs, and waits for the layer's gate: only what it lets pass is built upon. It is waited
// for also when nothing was changed, since a cluster can have become unwell since.
func (d *conductor) after(ctx context.Context, layer layers.Layer) error {
	if layer.Name == layers.Platform {
		if err := d.talosUp(ctx); err != nil {
			return err
		}
	}
	if layer.Name == layers.Secrets {
		return nil
	}
	return d.gate(ctx, layer)
}

// talosUp configures the machines and bootstraps etcd, where that is not done yet.
func (d *conductor) talosUp(ctx context.Context) error {
	if d.machines != nil {
		return d.machines.wait()
	}
	// From here on the machines hold data, and none of them is a leftover any more.
	if err := d.StateFiles(d.access.Values).ForgetUnfinished(ctx); err != nil {
		return err
	}
	options := talos.Options{Event: d.machine}
	if d.Description.MakesMachines() {
		machines := d.Hypervisor(d.access)
		defer machines.Close()
		options.UUID = machines.UUID
	}
	_, err := talos.Up(ctx, d.Description, d.access.Bundle, options)
	return err
}

// gate waits for a layer's own gate.
func (d *conductor) gate(ctx context.Context, layer layers.Layer) error {
	client, err := d.access.API()
	if err != nil {
		return err
	}
	env := gates.Env{Kube: client, Cluster: d.Description, Scaled: d.Scaled}
	if layer.Name == layers.Platform {
		machines, err := d.Machines(d.access)
		if err != nil {
			return err
		}
		defer machines.Close()
		env.Talos = Quorum{machines}
	}
	timeout := gates.Limit(layer.Name)
	if d.GateTimeout > 0 {
		timeout = d.GateTimeout
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	d.mutex.Lock()
	d.awaiting[layer.Name] = cancel
	d.mutex.Unlock()
	return gates.Run(ctx, layer.Name, env, gates.Options{Timeout: timeout, Events: d.notes.gate(layer.Name)})
}

// failed ends the waits of layers for the objects of one that failed: they would never come.
func (d *conductor) failed(layer layers.Layer) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for name, cancel := range d.awaiting {
		if slices.Contains(layers.Named(name).Awaits, layer.Name) {
			cancel(fmt.Errorf("layer %s failed, which %s waits for", layer.Name, name))
		}
	}
}

// copyLimit bounds the copying of a state.
const copyLimit = time.Minute

// copyState keeps a copy of a layer's state. That it could not be made is noted, and fails nothing.
func (d *conductor) copyState(ctx context.Context, layer layers.Layer) {
	ctx, cancel := context.WithTimeout(ctx, copyLimit)
	defer cancel()
	if err := d.StateFiles(d.access.Values).Copy(ctx, layer.Name, time.Now()); err != nil {
		d.append(timeline.Event{Kind: timeline.KindStep, Layer: layer.Name, Name: "copy of the state", Phase: timeline.PhaseEnd, Result: timeline.ResultFailed, Cause: err.Error()})
	}
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
