// Package plan is what create would change.
package plan

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/platform"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/talos"
)

// Plan is what create would change.
type Plan struct {
	Cluster string      `json:"cluster"`
	Layers  []LayerPlan `json:"layers"`
	// Machines are what create would change of the configuration of machines that are there.
	Machines []string `json:"machines,omitempty"`
	// Refused is what create would not do of it unasked, with the ways.
	Refused []string `json:"refused,omitempty"`
}

// LayerPlan is what create would change in one layer.
type LayerPlan struct {
	Layer   string   `json:"layer"`
	Summary string   `json:"summary"` // OpenTofu's own, or why it could not be planned
	Changes []string `json:"changes"` // "kubectl_manifest.pool will be created"
	Failed  bool     `json:"failed"`

	// machines are those that would go.
	machines platform.Consequences
}

// Execute asks every layer what it would change and changes nothing: no lock of a state is kept, no record is written.
func Execute(ctx context.Context, cluster *run.Cluster) (*Plan, error) {
	if err := cluster.LoadForLayers(); err != nil {
		return nil, err
	}
	cluster.Description.Secrets.ForPlanning()
	done, err := cluster.VerifyProxmox(ctx)
	if err != nil {
		return nil, err
	}
	defer done()
	access, err := cluster.Resolve(ctx, false)
	if err != nil {
		return nil, err
	}
	if _, err := cluster.StatesOf(ctx, access); err != nil {
		return nil, err
	}
	folder, err := os.MkdirTemp("", "castle-plans-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(folder)
	plans, err := layerPlans(ctx, cluster, access, folder)
	if err != nil {
		return nil, err
	}
	made := &Plan{Cluster: cluster.Description.Name}
	made.Machines, err = machines(ctx, cluster, access)
	if lasting := (*talos.LastingError)(nil); errors.As(err, &lasting) {
		made.Refused = append(made.Refused, strings.Split(err.Error(), "\n")...)
	} else if err != nil {
		return nil, err
	}
	unwanted, err := cluster.Unwanted(ctx, access)
	if err != nil {
		return nil, err
	}
	for _, layer := range unwanted {
		made.Refused = append(made.Refused, layer.Refused(made.Cluster).Error())
	}
	if err := cluster.FitsLockdown(ctx, access); ctx.Err() != nil {
		return nil, ctx.Err()
	} else if err != nil {
		made.Refused = append(made.Refused, strings.Split(err.Error(), "\n")...)
	}
	for _, plan := range plans {
		made.Layers = append(made.Layers, plan)
		if err := plan.machines.Refused(cluster.Description, nil, nil); err != nil {
			made.Refused = append(made.Refused, strings.Split(err.Error(), "\n")...)
		}
	}
	return made, nil
}

// layerPlans plans the layers, in the order in which create applies them; folder takes OpenTofu's accounts.
func layerPlans(ctx context.Context, cluster *run.Cluster, access *run.Access, folder string) (plans []LayerPlan, err error) {
	which := layers.Of(cluster.Description)
	causes := map[string]*run.Cause{}
	for _, layer := range which {
		causes[layer.Name] = &run.Cause{}
	}
	way, err := cluster.APIForPlans(access)
	if err != nil {
		return nil, err
	}
	defer way.Close()
	units, err := cluster.Units(access, way.Environment(), os.DevNull, func(unit, message string) {
		if cause := causes[layers.OfFolder(unit).Name]; cause != nil {
			cause.Add(redact.Text(message))
		}
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, units.Close()) }()
	results := map[string]error{}
	for _, outcome := range layers.Walk(ctx, which, layers.ToApply(), func(ctx context.Context, layer layers.Layer) error {
		return units.Plan(ctx, layer, run.Plan{Account: folder})
	}) {
		results[outcome.Layer.Name] = outcome.Err
	}
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	for _, layer := range which {
		plan := LayerPlan{Layer: layer.Name}
		if err := plan.fill(results[layer.Name], filepath.Join(folder, layer.Name+".json")); err != nil {
			return nil, err
		}
		if plan.Failed {
			plan.Summary = causes[layer.Name].Text()
			if plan.Summary == "" {
				plan.Summary = redact.Text(results[layer.Name].Error())
			}
		}
		plans = append(plans, plan)
	}
	return plans, nil
}

// lookTime bounds the look at the machines, which may not be there yet.
const lookTime = 5 * time.Second

// machines are the nodes whose configuration would change, a line each.
func machines(ctx context.Context, cluster *run.Cluster, access *run.Access) ([]string, error) {
	there, err := cluster.Machines(access)
	if err != nil {
		return nil, err
	}
	defer there.Close()
	bounded, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	changes, err := there.Changes(bounded, access.Bundle)
	if ctx.Err() != nil || err != nil && !errors.Is(err, context.DeadlineExceeded) {
		return nil, err
	}
	var lines []string
	for _, change := range changes {
		how := "without a restart"
		if change.Restart {
			how = "with a restart"
		}
		lines = append(lines, fmt.Sprintf("%s will get another machine configuration, %s", change.Node, how))
	}
	return lines, nil
}

// fill says what became of the layer's plan, whose stream is in a file, if it came so far.
func (p *LayerPlan) fill(result error, file string) error {
	p.Failed = layers.Outcome{Err: result}.Failed()
	switch {
	case errors.Is(result, layers.ErrSkipped):
		p.Summary = "can be planned when the layers that it needs can"
	case errors.Is(result, layers.ErrExcluded):
		p.Summary = result.Error()
	}
	stream, err := os.ReadFile(file)
	if errors.Is(err, os.ErrNotExist) && result != nil {
		return nil
	}
	if err != nil {
		return err
	}
	return p.read(strings.NewReader(redact.Text(string(stream))))
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
	for i, line := range p.Machines {
		if i == 0 {
			fmt.Fprintln(&out)
		}
		fmt.Fprintln(&out, line)
	}
	for _, refusal := range p.Refused {
		fmt.Fprintf(&out, "\n%s\n", refusal)
	}
	return out.String()
}

// Markdown is for a job's summary.
func (p *Plan) Markdown() string { return rendering.Block("text", p.Text()) }
