package states

import (
	"context"
	"fmt"
	"strings"

	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/run"
)

// Shown is what the state of one layer holds, without any value that could be secret.
type Shown struct {
	Cluster string `json:"cluster"`
	Layer   string `json:"layer"`
	state.Summary
}

// Show looks into the state of a layer, and changes nothing.
func Show(ctx context.Context, cluster *run.Cluster, layer string) (*Shown, error) {
	if err := known(layer); err != nil {
		return nil, err
	}
	_, store, err := cluster.OpenStates(ctx)
	if err != nil {
		return nil, err
	}
	summary, err := store.Summary(ctx, layer)
	if err != nil {
		return nil, err
	}
	if summary == nil {
		return nil, fmt.Errorf("layer %s has no state", layer)
	}
	return &Shown{Cluster: cluster.Description.Name, Layer: layer, Summary: *summary}, nil
}

// Text is for a person.
func (s *Shown) Text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "state of layer %s of cluster %s: serial %d, lineage %s, written by OpenTofu %s\n", s.Layer, s.Cluster, s.Serial, s.Lineage, s.Tofu)
	for _, resource := range s.Resources {
		fmt.Fprintf(&out, "\n  %s\n", resource.Address)
		if resource.ID != "" {
			fmt.Fprintf(&out, "    id        %s\n", resource.ID)
		}
		fmt.Fprintf(&out, "    provider  %s\n", resource.Provider)
		if resource.Status != "" {
			fmt.Fprintf(&out, "    status    %s\n", resource.Status)
		}
	}
	for i, output := range s.Outputs {
		if i == 0 {
			out.WriteString("\n  outputs: ")
		} else {
			out.WriteString(", ")
		}
		out.WriteString(output)
	}
	if len(s.Outputs) > 0 {
		out.WriteString("\n")
	}
	return out.String()
}

// Markdown is the same for a job's summary.
func (s *Shown) Markdown() string { return rendering.Block("text", s.Text()) }
