// Package doctor says before anything is changed whether a cluster can be created, and what is wrong with what one stands on.
package doctor

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/cluster/preflight"
	"tazlab.net/castle/ci/cluster/run"
)

// PushTokenVariable is the variable of the environment that holds the token that publishing pushes to the GitOps repository with.
const PushTokenVariable = "CASTLE_GIT_TOKEN"

// Report is what was found.
type Report struct {
	Cluster string          `json:"cluster"`
	Failed  int             `json:"failed"` // rows; with any, create does not begin
	Rows    []preflight.Row `json:"rows"`
}

// Execute looks at everything at once, and changes nothing.
func Execute(ctx context.Context, cluster *run.Cluster, asked preflight.Asked) (*Report, error) {
	if err := cluster.Load(); err != nil {
		return nil, err
	}
	report := &Report{Cluster: cluster.Description.Name, Rows: preflight.All(ctx, cluster, asked)}
	report.Failed = report.count(preflight.Failed)
	return report, ctx.Err()
}

func (r *Report) count(verdict preflight.Verdict) (n int) {
	for _, row := range r.Rows {
		if row.Verdict == verdict {
			n++
		}
	}
	return n
}

// Text is for a person.
func (r *Report) Text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "what cluster %s is made with and on\n\n", r.Cluster)
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	group := ""
	for _, row := range r.Rows {
		shown := row.Group
		if group == row.Group {
			shown = ""
		}
		group = row.Group
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", shown, row.Name, row.Verdict, row.Seen)
		if row.Fix != "" {
			fmt.Fprintf(table, "\t\t\t→ %s\n", row.Fix)
		}
	}
	_ = table.Flush() // into memory
	var counts []string
	for _, verdict := range []preflight.Verdict{preflight.OK, preflight.Warning, preflight.Failed, preflight.NotChecked} {
		if n := r.count(verdict); n > 0 {
			counts = append(counts, fmt.Sprintf("%d %s", n, verdict))
		}
	}
	fmt.Fprintf(&out, "\n%s\n", strings.Join(counts, ", "))
	return out.String()
}

// Markdown is the same for a job's summary.
func (r *Report) Markdown() string { return rendering.Block("text", r.Text()) }
