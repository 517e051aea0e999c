package run

import (
	"fmt"
	"strings"

	"tazlab.net/castle/ci/cluster/outputs"
	"tazlab.net/castle/ci/cluster/timeline"
)

// Result is what a run led to.
type Result struct {
	Command  string            `json:"command"`
	Cluster  string            `json:"cluster"`
	Warnings []string          `json:"warnings,omitempty"` // of what the description should not say
	Notes    []string          `json:"notes,omitempty"`    // what else there is to be known of it, a line each
	Timeline timeline.Timeline `json:"timeline"`
	Outputs  outputs.Outputs   `json:"outputs"`
}

// Text is for a person.
func (r *Result) Text() string {
	var out strings.Builder
	if r.Command != "create" {
		fmt.Fprintf(&out, "%s of cluster %s: done in %s\n", r.Command, r.Cluster, r.Timeline.Total)
		for _, note := range r.Notes {
			fmt.Fprintln(&out, note)
		}
		return out.String()
	}
	fmt.Fprintf(&out, "cluster %s is up after %s\n\n", r.Cluster, r.Timeline.Total)
	for _, layer := range r.Timeline.Layers {
		line := fmt.Sprintf("  %-11s %-10s %s", layer.Name, layer.Took, strings.TrimPrefix(layer.Result, timeline.ResultOK))
		fmt.Fprintln(&out, strings.TrimRight(line, " "))
	}
	fmt.Fprintf(&out, "\n%s", r.Outputs.Text())
	for _, warning := range r.Warnings {
		fmt.Fprintf(&out, "\nwarning: %s\n", warning)
	}
	return out.String()
}

// Markdown is the time line, for a job's summary.
func (r *Result) Markdown() string {
	text, _ := r.Timeline.Markdown() // made in memory, it has no error
	return string(text)
}
