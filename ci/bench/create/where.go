//go:build linux

package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// phases are where a layer's time went, out of what the tools printed and when.
type phases struct {
	Layer string
	// Since when the layer was worked on, from the command's start.
	Start seconds
	Init  seconds // Terragrunt's preparation and `tofu init`
	Plan  seconds // the look at Helm's release, start of `tofu apply`, of its providers, and the refresh, until the plan is there
	Apply seconds // the changes, without the gates among them
	Talos seconds // castle-cluster talos up
	Gates seconds // castle-cluster wait, within the changes and after them
	End   seconds // from the last gate's end to the next step, with the hook that notes it
}

func (p phases) total() seconds {
	return p.Init + p.Plan + p.Apply + p.Talos + p.Gates + p.End
}

// castleOwn is the row for what castle does before Terragrunt starts and after it has ended.
const castleOwn = "castle itself"

// marks of the trace, by how a message begins. OpenTofu's own words, of 1.12; Terragrunt's, of 1.1.
const (
	markPlanned   = "OpenTofu used the selected providers"
	markUnchanged = "No changes."
	markApplied   = "Apply complete!"
	markHook      = "Executing hook: "
	markGate      = "terraform_data.webhook: Creating..."
	markGateEnd   = "terraform_data.webhook: Creation complete"
)

// split divides a recorded run into its phases.
func split(o *outcome) []phases {
	if len(o.Trace) == 0 {
		return nil
	}
	before := o.Trace[0].Time.Sub(o.Began)
	after := o.Began.Add(o.Wall).Sub(o.Trace[len(o.Trace)-1].Time)
	all := []phases{{Layer: castleOwn, Init: seconds(before), End: seconds(after)}}
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
		if last.IsZero() {
			p.Start, last = seconds(l.Time.Sub(o.Began)), l.Time
		}
		*field += seconds(l.Time.Sub(last))
		last = l.Time
		// One message can have several lines, of which the first need not tell.
		for text := range strings.Lines(l.Text) {
			hook, isHook := strings.CutPrefix(strings.TrimSpace(text), markHook)
			switch {
			case isHook && hook == "start":
				field = &p.Plan
			case isHook && hook == "talos":
				field = &p.Talos
			case isHook && hook == "gate":
				field = &p.Gates
			case isHook:
				field = &p.End
			case strings.HasPrefix(text, markPlanned), strings.HasPrefix(text, markUnchanged), strings.HasPrefix(text, markGateEnd):
				field = &p.Apply
			case strings.HasPrefix(text, markGate):
				field = &p.Gates
			case strings.HasPrefix(text, markApplied):
				field = &p.End
			}
		}
	}
	return p
}

func phasesMarkdown(all []phases) string {
	var out strings.Builder
	fmt.Fprintln(&out, "| | starts | init | plan | apply | talos | gates | rest | in all |\n|---|---:|---:|---:|---:|---:|---:|---:|---:|")
	for _, p := range all {
		fmt.Fprintf(&out, "| %s | %s | %s | %s | %s | %s | %s | %s | %s |\n", p.Layer, p.Start, p.Init, p.Plan, p.Apply, p.Talos, p.Gates, p.End, p.total())
	}
	return out.String()
}
