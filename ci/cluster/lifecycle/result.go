package lifecycle

import (
	"encoding/json"
	"fmt"
	"strings"

	"tazlab.net/castle/ci/cluster/timeline"
)

// Result is what a run led to.
type Result struct {
	Command  string            `json:"command"`
	Cluster  string            `json:"cluster"`
	Timeline timeline.Timeline `json:"timeline"`
	Outputs  Outputs           `json:"outputs"`
}

// Render writes the result as text, json or markdown.
func (r *Result) Render(format string) (string, error) {
	switch format {
	case "json":
		data, err := json.MarshalIndent(r, "", "  ")
		return string(data) + "\n", err
	case "markdown":
		text, err := r.Timeline.Markdown()
		return string(text), err
	}
	var out strings.Builder
	if r.Command != "create" {
		fmt.Fprintf(&out, "%s of cluster %s: done in %s\n", r.Command, r.Cluster, r.Timeline.Total)
		return out.String(), nil
	}
	fmt.Fprintf(&out, "cluster %s is up after %s\n\n", r.Cluster, r.Timeline.Total)
	for _, layer := range r.Timeline.Layers {
		line := fmt.Sprintf("  %-11s %-10s %s", layer.Name, layer.Took, strings.TrimPrefix(layer.Result, timeline.ResultOK))
		fmt.Fprintln(&out, strings.TrimRight(line, " "))
	}
	fmt.Fprintf(&out, "\n%s", r.Outputs.Text())
	return out.String(), nil
}
