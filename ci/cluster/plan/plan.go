// Package plan is what create would change.
package plan

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"text/tabwriter"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/terragrunt"
	"tazlab.net/castle/ci/cluster/run"
)

// Plan is what create would change.
type Plan struct {
	Cluster string      `json:"cluster"`
	Layers  []LayerPlan `json:"layers"`
}

// LayerPlan is what create would change in one layer.
type LayerPlan struct {
	Layer   string   `json:"layer"`
	Summary string   `json:"summary"` // OpenTofu's own, or why it could not be planned
	Changes []string `json:"changes"` // "kubectl_manifest.pool will be created"
	Failed  bool     `json:"failed"`
}

var (
	planSummary = regexp.MustCompile(`^(Plan: .*|No changes\..*|Changes to Outputs:)`)
	planChange  = regexp.MustCompile(`^# (.+ (?:will|must) be .+)$`)
)

// Execute asks every layer what it would change and changes nothing: no lock of a state is kept, no record is written.
func Execute(ctx context.Context, cluster *run.Cluster) (*Plan, error) {
	if err := cluster.Load(); err != nil {
		return nil, err
	}
	access, err := cluster.Resolve(ctx, false)
	if err != nil {
		return nil, err
	}
	plans, causes := map[string]*LayerPlan{}, map[string]*run.Cause{}
	for _, layer := range layers.All {
		plans[layer.Name], causes[layer.Name] = &LayerPlan{Layer: layer.Name}, &run.Cause{}
	}
	runner, err := cluster.Runner(access, os.DevNull, func(unit, message string) {
		plan := plans[layers.OfFolder(unit).Name]
		if plan == nil {
			return
		}
		message = redact.Text(message)
		causes[plan.Layer].Add(message)
		for line := range strings.Lines(message) {
			plan.read(strings.TrimSpace(line))
		}
	})
	if err != nil {
		return nil, err
	}
	report, err := runner.RunAll(ctx, "plan", "-lock=false")
	if err != nil && !errors.As(err, new(*terragrunt.Failed)) {
		return nil, err
	}
	for _, unit := range report {
		plan := plans[layers.OfFolder(unit.Name).Name]
		switch {
		case plan == nil:
		case unit.Result == terragrunt.FailedRun:
			plan.Failed, plan.Summary = true, causes[plan.Layer].Text()
		case unit.Result == terragrunt.EarlyExit:
			plan.Summary = "can be planned when the layers that it needs can"
		}
	}
	made := &Plan{Cluster: cluster.Description.Name}
	for _, layer := range layers.All {
		made.Layers = append(made.Layers, *plans[layer.Name])
	}
	return made, nil
}

// read takes a line of what OpenTofu prints.
func (p *LayerPlan) read(line string) {
	if match := planChange.FindStringSubmatch(line); match != nil {
		p.Changes = append(p.Changes, match[1])
	}
	if planSummary.MatchString(line) && !strings.HasPrefix(p.Summary, "Plan:") {
		p.Summary = line
	}
}

// Text is for a person.
func (p *Plan) Text() string {
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, layer := range p.Layers {
		fmt.Fprintf(table, "%s\t%s\n", layer.Layer, strings.ReplaceAll(layer.Summary, "\n", "\n\t"))
		for _, change := range layer.Changes {
			fmt.Fprintf(table, "\t  %s\n", change)
		}
	}
	_ = table.Flush() // a strings.Builder takes everything
	return out.String()
}

// Markdown is for a job's summary.
func (p *Plan) Markdown() string { return rendering.Block("text", p.Text()) }
