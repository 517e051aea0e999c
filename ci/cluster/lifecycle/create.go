package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tazlab.net/castle/ci/cluster/description"
	"tazlab.net/castle/ci/cluster/layers/terragrunt"
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

// Create brings the cluster up, or on from where an earlier run ended: what is there and as described is left alone.
func (c *Cluster) Create(ctx context.Context) (*Result, error) {
	return c.record(ctx, "create", func(ctx context.Context, run *run) error {
		access, err := c.secretsLayer(ctx, run, true)
		if err != nil {
			return err
		}
		err = c.removeUnfinished(ctx, run, access)
		if err == nil {
			err = c.noteUnfinished(ctx, access)
		}
		if err != nil {
			return c.platformFailure(ctx, run, err)
		}
		defer c.pullAhead(ctx, run, access)()
		return c.terragrunt(ctx, run, access, "apply", "-auto-approve")
	})
}

// record runs a command as one run: locked, its steps shown as they happen, its time line written also when it failed.
func (c *Cluster) record(ctx context.Context, command string, do func(context.Context, *run) error) (*Result, error) {
	if err := c.load(); err != nil {
		return nil, err
	}
	run, err := c.begin(command)
	if err != nil {
		return nil, err
	}
	following, stop := context.WithCancel(context.WithoutCancel(ctx))
	shown := make(chan error, 1)
	go func() { shown <- timeline.Follow(following, run.events(), c.Out, timeline.Redacting(run.redactor)) }()

	err = do(ctx, run)
	if ctx.Err() != nil && !errors.As(err, new(*Failure)) {
		err = &Failure{Layer: "", Cause: "interrupted", Resume: c.resume(command), err: context.Cause(ctx)}
	}
	end := timeline.Event{Kind: timeline.KindRun, Cluster: c.description.Name, Name: command, Phase: timeline.PhaseEnd, Result: timeline.ResultOK}
	var failure *Failure
	if err != nil {
		end.Result, end.Cause, end.Next = timeline.ResultFailed, err.Error(), c.resume(command)
		if errors.As(err, &failure) {
			end.Layer, end.Cause = failure.Layer, failure.Cause
		}
	}
	recordErr := run.log.Append(end)
	stop()
	recordErr = errors.Join(recordErr, <-shown)
	made, timelineErr := c.writeTimeline(run)
	recordErr = errors.Join(recordErr, timelineErr, run.end())
	if err != nil {
		return nil, errors.Join(err, recordErr)
	}
	return &Result{Command: command, Cluster: c.description.Name, Timeline: made, Outputs: c.outputs()}, recordErr
}

// resume is the command that goes on after a failure.
func (c *Cluster) resume(command string) string {
	arguments := "--cluster " + c.description.Name
	if c.description.Platform != description.PlatformSandbox {
		arguments += " --age-key env:SOPS_AGE_KEY"
	}
	if command == "destroy" {
		arguments += " --confirm " + c.description.Name
	}
	return fmt.Sprintf("to go on where it stopped: dagger call %s %s", command, arguments)
}

// secretsLayer is the part of the first layer that happens in memory; its unit records only what was found.
func (c *Cluster) secretsLayer(ctx context.Context, run *run, keep bool) (*access, error) {
	event := timeline.Event{Kind: timeline.KindLayer, Cluster: c.description.Name, Layer: LayerSecrets, Phase: timeline.PhaseStart}
	if err := run.log.Append(event); err != nil {
		return nil, err
	}
	access, err := c.resolve(ctx, keep)
	if err == nil {
		run.redactor.Add(access.secret()...)
		return access, nil
	}
	event.Phase, event.Result, event.Cause = timeline.PhaseEnd, timeline.ResultFailed, err.Error()
	return nil, errors.Join(&Failure{Layer: LayerSecrets, Cause: err.Error(), Resume: c.resume(run.command), err: err}, run.log.Append(event))
}

// platformFailure tells that the layer platform could not even be started.
func (c *Cluster) platformFailure(ctx context.Context, run *run, err error) error {
	if ctx.Err() != nil {
		return err // record tells of an interruption
	}
	return &Failure{Layer: LayerPlatform, Cause: err.Error(), Resume: c.resume(run.command), err: err}
}

// terragrunt runs a command in all layers, and tells which of them failed and why.
func (c *Cluster) terragrunt(ctx context.Context, run *run, access *access, command ...string) error {
	environment, err := c.environment(access, run.events())
	if err != nil {
		return err
	}
	logs := newLogs(filepath.Join(run.folder, logFolder), run.redactor)
	runner := terragrunt.Runner{Binary: c.Tools.Terragrunt, Tofu: c.Tools.Tofu, Dir: c.Folder, Env: environment, Log: logs.write}
	run.logs = logs
	report, err := runner.RunAll(ctx, command...)
	err = errors.Join(err, logs.close())
	if err == nil {
		return nil
	}
	var failed *terragrunt.Failed
	if errors.As(err, &failed) {
		err = c.failure(run, logs, failed)
	}
	return errors.Join(err, c.closeLayers(run, report, logs))
}

// failure names the first layer that failed by itself.
func (c *Cluster) failure(run *run, logs *logs, failed *terragrunt.Failed) error {
	first := failed.Units()[0]
	for _, unit := range failed.Units() {
		if unit.Ended.Before(first.Ended) {
			first = unit
		}
	}
	layer := layerOf(first.Name)
	cause := logs.cause(layer)
	if cause == "" {
		cause = strings.TrimSpace(first.Reason + " " + first.Cause)
	}
	return &Failure{Layer: layer, Cause: cause, Resume: c.resume(run.command), err: failed}
}

// closeLayers ends in the log the layers that no hook could end.
func (c *Cluster) closeLayers(run *run, report terragrunt.Report, logs *logs) error {
	var err error
	for _, unit := range report {
		event := timeline.Event{Time: unit.Ended, Kind: timeline.KindLayer, Cluster: c.description.Name, Layer: layerOf(unit.Name), Phase: timeline.PhaseEnd}
		switch unit.Result {
		case terragrunt.FailedRun:
			event.Result, event.Cause = timeline.ResultFailed, logs.cause(event.Layer)
		case terragrunt.EarlyExit:
			event.Time, event.Result, event.Cause = time.Time{}, timeline.ResultSkipped, "a layer that it needs failed"
		default:
			continue
		}
		err = errors.Join(err, run.log.Append(event))
	}
	return err
}

// edges are the layers' dependencies for the time line.
func edges() map[string][]string {
	needs := map[string][]string{}
	for _, layer := range layers {
		needs[layer.name] = slices.Concat(layer.needs, layer.awaits)
	}
	return needs
}

// writeTimeline makes the reports of a run out of its events.
func (c *Cluster) writeTimeline(run *run) (timeline.Timeline, error) {
	events, err := timeline.Read(run.events())
	if err != nil {
		return timeline.Timeline{}, err
	}
	options := []timeline.Option{timeline.Redacting(run.redactor)}
	if c.Scaled {
		options = append(options, timeline.Scaled())
	}
	made := timeline.Build(run.logs.judge(events), edges(), options...)
	for name, render := range map[string]func() ([]byte, error){"timeline.json": made.JSON, "timeline.md": made.Markdown, "timeline.html": made.HTML} {
		data, err := render()
		if err == nil {
			err = os.WriteFile(filepath.Join(run.folder, name), data, 0o644)
		}
		if err != nil {
			return made, err
		}
	}
	return made, nil
}
