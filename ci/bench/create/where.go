//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// phases are where a layer's time went, out of what the tools printed and when, and of the time line.
type phases struct {
	Layer string
	// Since when the layer was worked on, from the command's start.
	Start seconds
	Init  seconds // Terragrunt's preparation and `tofu init`
	Plan  seconds // start of `tofu apply`, of its providers, and the refresh, until the plan is there
	Apply seconds // the changes, without the gates among them
	Gates seconds // castle-cluster wait within the changes; after them the machines' coming up, and the layer's own gate
}

func (p phases) total() seconds { return p.Init + p.Plan + p.Apply + p.Gates }

// castleOwn is the row for what castle does before the first layer starts and after the last one has ended.
const castleOwn = "castle itself"

// marks of the trace, by how a message begins. OpenTofu's own words, of 1.12.
const (
	markInit      = "OpenTofu has been successfully initialized!"
	markPlanned   = "OpenTofu used the selected providers"
	markUnchanged = "No changes."
	markApplied   = "Apply complete!"
	markGate      = "terraform_data.webhook: Creating..."
	markGateEnd   = "terraform_data.webhook: Creation complete"
)

// split divides a recorded run into its phases.
func split(o *outcome) []phases {
	own := phases{Layer: castleOwn, Init: seconds(o.Timeline.Started.Sub(o.Began)), Gates: seconds(o.Began.Add(o.Wall).Sub(o.Timeline.Started) - time.Duration(o.Timeline.Total))}
	all := []phases{own}
	for _, unit := range units(o.Trace) {
		all = append(all, splitUnit(o, unit))
	}
	return all
}

// units are those of a trace, by name, which is the layers' order.
func units(trace []line) []string {
	var names []string
	for _, l := range trace {
		if l.Unit != "" && !slices.Contains(names, l.Unit) {
			names = append(names, l.Unit)
		}
	}
	slices.Sort(names)
	return names
}

func splitUnit(o *outcome, unit string) phases {
	_, name, _ := strings.Cut(unit, "-")
	p := phases{Layer: name}
	field := &p.Init
	var last time.Time
	for _, l := range o.Trace {
		if l.Unit != unit {
			continue
		}
		if last.IsZero() || l.Text == eventStart { // what goes before the layers plans the machines, too
			p, field, last = phases{Layer: name, Start: seconds(l.Time.Sub(o.Began))}, &p.Init, l.Time
		}
		*field += seconds(l.Time.Sub(last))
		last = l.Time
		// One message can have several lines, of which the first need not tell.
		for text := range strings.Lines(l.Text) {
			switch {
			case strings.HasPrefix(text, markInit):
				field = &p.Plan
			case strings.HasPrefix(text, markPlanned), strings.HasPrefix(text, markUnchanged), strings.HasPrefix(text, markGateEnd):
				field = &p.Apply
			case strings.HasPrefix(text, markGate), strings.HasPrefix(text, markApplied):
				field = &p.Gates
			}
		}
	}
	for _, layer := range o.Timeline.Layers {
		if layer.Name == name {
			p.Gates += seconds(max(o.Timeline.Started.Add(time.Duration(layer.End())).Sub(last), 0))
		}
	}
	return p
}

func phasesMarkdown(all []phases) string {
	var out strings.Builder
	fmt.Fprintln(&out, "| | starts | init | plan | apply | gates | in all |\n|---|---:|---:|---:|---:|---:|---:|")
	for _, p := range all {
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %s | %s |\n", p.Layer, p.Start, p.Init, p.Plan, p.Apply, p.Gates, p.total())
	}
	return out.String()
}
