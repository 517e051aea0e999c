package run

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/outputs"
	"tazlab.net/castle/ci/cluster/timeline"
)

// Failure is a run that did not get through: which layer, why in the tool's own words, and how to go on.
type Failure struct {
	Layer  string
	Cause  string
	Resume string
	err    error
}

func (f *Failure) Error() string {
	if f.Layer == "" {
		return f.Cause + "\n" + f.Resume
	}
	return fmt.Sprintf("layer %s failed: %s\n%s", f.Layer, f.Cause, f.Resume)
}

func (f *Failure) Unwrap() error { return f.err }

// Execute runs a command as one run: locked, its steps shown as they happen, its time line written also when it failed, as it is
// in the result then.
func (c *Cluster) Execute(ctx context.Context, command string, do func(context.Context, *Record) error) (*Result, error) {
	if err := c.StatesAreKept(); err != nil {
		return nil, err
	}
	if err := c.FolderIsOurs(ctx, c.Owner); errors.As(err, new(*state.NotOurs)) {
		return nil, err
	} else if err != nil {
		return nil, &Failure{Layer: layers.Secrets, Cause: err.Error(), Resume: c.resume(command), err: err}
	}
	record, err := c.begin(command)
	if err != nil {
		return nil, err
	}
	warnings := c.Description.Warnings()
	for _, warning := range warnings {
		fmt.Fprintln(c.Out, "warning: "+warning)
	}
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	shown := make(chan error, 1)
	go func() {
		shown <- timeline.Follow(following, record.Events(), c.Out)
	}()

	err = do(ctx, record)
	if ctx.Err() != nil && !errors.As(err, new(*Failure)) {
		err = &Failure{Layer: "", Cause: "interrupted", Resume: c.resume(command), err: context.Cause(ctx)}
	}
	end := timeline.Event{Kind: timeline.KindRun, Cluster: c.Description.Name, Name: command, Phase: timeline.PhaseEnd, Result: timeline.ResultOK}
	var failure *Failure
	if err != nil {
		end.Result, end.Cause, end.Next = timeline.ResultFailed, err.Error(), c.resume(command)
		if errors.As(err, &failure) {
			end.Layer, end.Cause = failure.Layer, failure.Cause
		}
	}
	recordErr := record.Log.Append(end)
	stop()
	recordErr = errors.Join(recordErr, <-shown)
	made, timelineErr := c.writeTimeline(record)
	recordErr = errors.Join(recordErr, timelineErr, record.end())
	return &Result{Command: command, Cluster: c.Description.Name, Warnings: warnings, Timeline: made, Outputs: outputs.Of(c.Description)}, errors.Join(err, recordErr)
}

// resume is the command that goes on after a failure.
func (c *Cluster) resume(command string) string {
	arguments := "--cluster " + c.Description.Name
	if c.Description.Platform != config.PlatformSandbox {
		arguments += " --age-key env:SOPS_AGE_KEY"
	}
	if c.LocalStates {
		command = "--state local " + command
	}
	if c.AllowUnpinned {
		command = "--allow-unpinned " + command
	}
	return fmt.Sprintf("to go on where it stopped: dagger call %s %s", command, strings.Join(append([]string{arguments}, c.Flags...), " "))
}

// SecretsLayer is the part of the first layer that happens in memory; its unit records only what was found. Where look, which may be nil,
// says what speaks against the run, it ends before anything was changed.
func (c *Cluster) SecretsLayer(ctx context.Context, record *Record, keep bool, look Look) (*Access, error) {
	event := timeline.Event{Kind: timeline.KindLayer, Cluster: c.Description.Name, Layer: layers.Secrets, Phase: timeline.PhaseStart}
	if err := record.Log.Append(event); err != nil {
		return nil, err
	}
	access, objection, err := c.resolve(ctx, keep, look)
	if err == nil && objection == nil {
		err = c.lockStates(ctx, record, access)
	}
	layer := layers.Secrets
	switch {
	case err == nil && objection == nil:
		return access, nil
	case err == nil:
		layer = "" // it is not the secrets that failed
	}
	err = errors.Join(err, objection)
	event.Phase, event.Result, event.Cause = timeline.PhaseEnd, timeline.ResultFailed, err.Error()
	return nil, errors.Join(&Failure{Layer: layer, Cause: err.Error(), Resume: c.resume(record.Command), err: err}, record.Log.Append(event))
}

// SecretsAlone is SecretsLayer for a run in which the layer's unit has nothing to record.
func (c *Cluster) SecretsAlone(ctx context.Context, record *Record) (*Access, error) {
	access, err := c.SecretsLayer(ctx, record, false, nil)
	if err != nil {
		return nil, err
	}
	return access, record.Log.Append(timeline.Event{Kind: timeline.KindLayer, Cluster: c.Description.Name, Layer: layers.Secrets,
		Phase: timeline.PhaseEnd, Result: timeline.ResultOK})
}

// PlatformFailure tells that the layer platform could not even be started.
func (c *Cluster) PlatformFailure(ctx context.Context, record *Record, err error) error {
	if ctx.Err() != nil {
		return err // Execute tells of an interruption
	}
	return &Failure{Layer: layers.Platform, Cause: err.Error(), Resume: c.resume(record.Command), err: err}
}

// NotKept tells that the cluster is there and its administrator's credentials could not be kept; nil where err is.
func (c *Cluster) NotKept(record *Record, err error) error {
	if err == nil {
		return nil
	}
	return &Failure{Layer: "", Cause: err.Error(), Resume: c.resume(record.Command), err: err}
}
