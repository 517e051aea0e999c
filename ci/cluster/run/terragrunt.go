package run

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tazlab.net/castle/ci/cluster/description"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/terragrunt"
	"tazlab.net/castle/ci/cluster/timeline"
)

// Terragrunt runs a command in all layers, and tells which of them failed and why.
func (c *Cluster) Terragrunt(ctx context.Context, record *Record, access *Access, command ...string) error {
	return c.terragrunt(ctx, record, access, c.Runner, command...)
}

// DestroyLayers destroys some layers, in the reverse order of all. grace is how long the tools have to end that are interrupted, as
// terragrunt.Runner has it.
func (c *Cluster) DestroyLayers(ctx context.Context, record *Record, access *Access, which []layers.Layer, grace time.Duration) error {
	whole := *c // also those layers that it does without by now
	whole.Description = c.Description.ForRemoval()
	return c.terragrunt(ctx, record, access, func(access *Access, way Way, events string, log Log) (terragrunt.Runner, error) {
		runner, err := whole.Runner(access, way, events, log)
		for _, layer := range which {
			runner.Only = append(runner.Only, layer.Folder)
		}
		runner.Grace = grace
		return runner, err
	}, "destroy", "-auto-approve")
}

// on makes a runner, as Cluster.Runner does.
type on func(access *Access, way Way, events string, log Log) (terragrunt.Runner, error)

func (c *Cluster) terragrunt(ctx context.Context, record *Record, access *Access, on on, command ...string) error {
	way, err := c.wayForTools(ctx, record, access)
	if err != nil {
		return err
	}
	defer way.Close()
	logs := newLogs(filepath.Join(record.Folder, LogFolder))
	runner, err := on(access, way.Environment(), record.Events(), logs.write)
	if err != nil {
		return err
	}
	if record.ahead != "" {
		runner.Env = append(runner.Env, variableAhead+"="+record.ahead)
	}
	record.logs = logs
	if c.Description.State.Backend == description.StateS3 {
		command = append(command, "-lock=false") // the run holds OpenTofu's locks itself: layers/state/locks.go
	}
	report, err := runner.RunAll(ctx, command...)
	err = errors.Join(err, logs.close())
	if err == nil {
		return nil
	}
	var failed *terragrunt.Failed
	if errors.As(err, &failed) {
		err = c.failure(record, logs, failed)
	}
	return errors.Join(err, c.closeLayers(record, report, logs))
}

// Way leads the tools to the API, by the variables that they read; nil where they ask it nothing.
type Way map[string]string

// Log takes what the tools print, as terragrunt.Runner has it.
type Log func(unit, message string)

// Runner is Terragrunt on the cluster's layers, of which those are left out that it does without. events is the file
// of the event log.
func (c *Cluster) Runner(access *Access, way Way, events string, log Log) (terragrunt.Runner, error) {
	given, err := c.given(access, events, way)
	if err != nil {
		return terragrunt.Runner{}, err
	}
	runner := terragrunt.Runner{
		Binary: c.Tools.Terragrunt, Tofu: c.Tools.Tofu, Dir: c.units(), Env: given.everybodys(), Secrets: given.secrets, Log: log,
	}
	if len(layers.Without(c.Description)) > 0 {
		for _, layer := range layers.Of(c.Description) {
			runner.Only = append(runner.Only, layer.Folder)
		}
	}
	return runner, nil
}

// failure names the first layer that failed by itself.
func (c *Cluster) failure(record *Record, logs *logs, failed *terragrunt.Failed) error {
	var units []terragrunt.Unit
	for _, unit := range failed.Report {
		if logs.failed(unit) {
			units = append(units, unit)
		}
	}
	if len(units) == 0 {
		return &Failure{Cause: failed.Error(), Resume: c.resume(record.Command), err: failed}
	}
	first := slices.MinFunc(units, func(a, b terragrunt.Unit) int { return a.Ended.Compare(b.Ended) })
	layer := layers.OfFolder(first.Name).Name
	cause := logs.cause(layer)
	if cause == "" {
		cause = strings.TrimSpace(first.Reason + " " + first.Cause)
	}
	return &Failure{Layer: layer, Cause: cause, Resume: c.resume(record.Command), err: failed}
}

// closeLayers ends in the log the layers that no hook could end.
func (c *Cluster) closeLayers(record *Record, report terragrunt.Report, logs *logs) error {
	var err error
	for _, unit := range report {
		event := timeline.Event{Time: unit.Ended, Kind: timeline.KindLayer, Cluster: c.Description.Name, Layer: layers.OfFolder(unit.Name).Name, Phase: timeline.PhaseEnd}
		switch {
		case logs.failed(unit):
			event.Result, event.Cause = timeline.ResultFailed, logs.cause(event.Layer)
		case unit.Result == terragrunt.EarlyExit:
			event.Time, event.Result, event.Cause = time.Time{}, timeline.ResultSkipped, "a layer that it needs failed"
		default:
			continue
		}
		err = errors.Join(err, record.Log.Append(event))
	}
	return err
}
