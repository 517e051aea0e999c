package report

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"tazlab.net/castle/ci/base/rendering"
)

// Waiter waits until a cluster runs what was published.
type Waiter interface {
	// Wait waits until what was delivered is available. Seconds are the caller's to set; what is known comes back with
	// an error too.
	Wait(ctx context.Context, delivered Delivered) (Rollout, error)
}

// Delivered is what a cluster is to run: the GitOps repository's commit, or one that was pushed after it, and the image as
// the manifest names it. Empty ones stand for whatever is newest.
type Delivered struct {
	Commit, Image string
	// Resource is the manifest's, and Repository the image's: they tell which Deployment is meant. Either may be empty.
	Resource   Resource
	Repository string
}

// Rollout is what became of a published image in a cluster. Its JSON form is part of the interface.
type Rollout struct {
	// Available says that the Deployment runs the image with all its pods.
	Available bool `json:"available"`
	// Cluster is the cluster's name, empty where only a kubeconfig is known.
	Cluster string `json:"cluster,omitempty"`
	// Deployment is namespace/name.
	Deployment string `json:"deployment"`
	// Revision is what Flux has fetched, "main@sha1:<commit>"; Image what the Deployment runs. Empty: not seen.
	Revision string `json:"revision,omitempty"`
	Image    string `json:"image,omitempty"`
	// Seconds passed from the push, or where nothing was pushed from the wait's beginning, until it was available or no
	// longer waited for.
	Seconds float64 `json:"seconds"`
	// Failed says that the Deployment was given the image and was then seen not to be available with it. Else, with a problem, it
	// is not known what became of it.
	Failed bool `json:"failed,omitempty"`
	// Problem is why it is not available, and Again the command that waits once more.
	Problem string `json:"problem,omitempty"`
	Again   string `json:"again,omitempty"`
}

// Wait waits, and takes down how long it took since the given moment. The report is never nil, and complete; the error
// is an *UnseenError.
func Wait(ctx context.Context, waiter Waiter, delivered Delivered, since time.Time) (*Rollout, error) {
	rollout, err := waiter.Wait(ctx, delivered)
	rollout.Seconds = time.Since(since).Seconds()
	rollout.Available = err == nil
	rollout.Failed = rollout.Failed && err != nil
	if err == nil {
		rollout.Again = ""
		return &rollout, nil
	}
	rollout.Problem = err.Error()
	return &rollout, &UnseenError{Rollout: rollout, err: err}
}

// WaitRollout waits for what the run has pushed, and adds it to the report; after a dry run it does nothing.
func (r *Result) WaitRollout(ctx context.Context, waiter Waiter) error {
	if r.DryRun {
		return nil
	}
	pushed := r.GitOps.At
	if pushed.IsZero() {
		pushed = time.Now()
	}
	delivered := Delivered{Commit: r.GitOps.Commit, Image: r.GitOps.Image, Resource: r.GitOps.Resource, Repository: r.Image.Repository}
	err := r.Step(ctx, "wait for the rollout", func(ctx context.Context) (err error) {
		r.Rollout, err = Wait(ctx, waiter, delivered, pushed)
		return err
	})
	r.Seconds += r.Rollout.Seconds
	if unseen, ok := errors.AsType[*UnseenError](err); ok {
		unseen.Published = r.done()
	}
	return err
}

// UnseenError is a rollout that was not seen. What was published before is published nevertheless.
type UnseenError struct {
	Rollout Rollout
	// Published says what had been published, empty where nothing was to be.
	Published string
	err       error
}

func (e *UnseenError) Error() string {
	text := "the rollout of " + e.Rollout.Deployment + e.Rollout.on() + " was not seen: " + e.Rollout.Problem
	if e.Published != "" {
		text = e.Published + "; only " + text
	}
	return text + "\nto wait again: " + e.Rollout.Again
}

func (e *UnseenError) Unwrap() error { return e.err }

// done says what a run published or went back to, for a reader who learns at the same time that something else went wrong.
func (r *Result) done() string {
	return fmt.Sprintf("the image %s is in the registry, and the manifest on branch %s names it (GitOps commit %s)",
		r.Image.Reference(), r.GitOps.Branch, rendering.ShortSHA(r.GitOps.Commit))
}

func (r Rollout) on() string {
	if r.Cluster == "" {
		return ""
	}
	return " on cluster " + r.Cluster
}

// headline says in one sentence what happened.
func (r Rollout) headline() string {
	if r.Available {
		return fmt.Sprintf("%s is available%s", r.Deployment, r.on())
	}
	return fmt.Sprintf("%s was not seen available%s", r.Deployment, r.on())
}

// rows are the lines of a publish's report: pushed says that something had been pushed to roll out.
func (r Rollout) rows(pushed bool) []row {
	outcome := r.headline()
	after := fmt.Sprintf("%.2f s", r.Seconds)
	if pushed {
		after += " after the push"
	}
	if r.Available {
		outcome += ", " + after
	}
	rows := []row{{"rollout", outcome}}
	if r.Revision != "" {
		rows = append(rows, row{"revision", r.Revision})
	}
	if !r.Available {
		rows = append(append(rows, row{"waited", after}), r.trouble()...)
	}
	return rows
}

// trouble is each problem on a row of its own, and the way on.
func (r Rollout) trouble() []row {
	var rows []row
	name := "problem"
	for line := range strings.Lines(r.Problem) {
		rows = append(rows, row{name, strings.TrimSpace(line)})
		name = ""
	}
	return append(rows, row{"wait again", r.Again})
}

// table are the lines of a wait's own report.
func (r Rollout) table() []row {
	rows := []row{{"revision", cmp.Or(r.Revision, "not seen")}}
	if r.Image != "" {
		rows = append(rows, row{"image", r.Image})
	}
	rows = append(rows, row{"waited", fmt.Sprintf("%.2f s", r.Seconds)})
	if !r.Available {
		rows = append(rows, r.trouble()...)
	}
	return rows
}

// Text is a wait's report for a person.
func (r Rollout) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", r.headline())
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range r.table() {
		fmt.Fprintf(table, "  %s\t%s\n", row.name, row.value)
	}
	table.Flush()
	return b.String()
}

// Markdown is a wait's report for GitHub's job summary.
func (r Rollout) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n| | |\n|---|---|\n", r.headline())
	for _, row := range r.table() {
		fmt.Fprintf(&b, "| %s | %s |\n", row.name, rendering.Code(row.value))
	}
	return b.String()
}
