package secretadmin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"

	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/secrets"
)

// Listing is what a cluster's sources hold, by names.
type Listing secrets.Survey

// List looks into all sources, and changes nothing. A source that cannot be read is part of what it tells.
func List(ctx context.Context, cluster *run.Cluster) (*Listing, error) {
	described, err := config.Load(cluster.Folder)
	if err != nil {
		return nil, err
	}
	return (*Listing)(secrets.Look(ctx, described, secrets.Inputs{Folder: cluster.Folder, AgeKey: cluster.AgeKey})), ctx.Err()
}

// Check is List with an error where a cluster could not be created from what is there: a line for each secret that is missing or unfit, and for
// each source that could not be read.
func Check(ctx context.Context, cluster *run.Cluster) (*Listing, error) {
	listing, err := List(ctx, cluster)
	if err != nil {
		return nil, err
	}
	var lines []string
	for _, seen := range listing.Secrets {
		if seen.State == secrets.StateMissing || seen.State == secrets.StateUnfit {
			lines = append(lines, seen.Problem)
		}
	}
	if lines = append(lines, listing.Unread...); len(lines) > 0 {
		return nil, errors.New("cluster " + listing.Cluster + " lacks secrets:\n  " + strings.Join(lines, "\n  "))
	}
	listing.Secrets = slices.DeleteFunc(listing.Secrets, func(seen secrets.Seen) bool { return seen.What == "" || seen.State == secrets.StateHidden })
	return listing, nil
}

// Text is for a person.
func (l *Listing) Text() string {
	var out strings.Builder
	fmt.Fprintf(&out, "secrets of cluster %s, without their values\n\n", l.Cluster)
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, seen := range l.Secrets {
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", seen.Name, seen.State, seen.Where, seen.What)
	}
	_ = table.Flush() // into memory
	for i, reason := range l.Unread {
		if i == 0 {
			out.WriteString("\nnot read:\n")
		}
		fmt.Fprintf(&out, "  %s\n", reason)
	}
	return out.String()
}

// Markdown is the same for a job's summary.
func (l *Listing) Markdown() string { return rendering.Block("text", l.Text()) }
