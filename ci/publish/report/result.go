// Package report is what a publish or a rollback did, the wait for its rollout included: as a person reads it, as a
// program, and in GitHub's job summary.
package report

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/base/tracing"
	"tazlab.net/castle/ci/publish/gitops"
	"tazlab.net/castle/ci/publish/site/hugoversion"
)

// Result is what a publish did, or in a dry run what it would do. Its JSON form is part of the interface: fields are
// added, never renamed.
type Result struct {
	// Changed says whether the registry or the GitOps repository changed.
	Changed bool `json:"changed"`
	// Rollback says that the image was published before and nothing was built.
	Rollback bool   `json:"rollback"`
	DryRun   bool   `json:"dryRun"`
	Source   Source `json:"source"`
	Image    Image  `json:"image"`
	GitOps   GitOps `json:"gitops"`
	// Hugo is the version that built the site, and who asked for it.
	Hugo hugoversion.Choice `json:"hugo,omitzero"`
	// Headers are there where it is known what the image sends.
	Headers *Headers `json:"headers,omitempty"`
	// Failed is the rollout that failed, where this is the way back from it.
	Failed *Rollout `json:"failed,omitempty"`
	// Rollout is there where it was waited for.
	Rollout *Rollout `json:"rollout,omitempty"`
	// Warnings say what in the site its author should change, one sentence each.
	Warnings []string `json:"warnings,omitempty"`
	// WarningLines are the same as the report for a person has them, where they are fewer.
	WarningLines []string `json:"warningLines,omitempty"`
	Steps        []Step   `json:"steps"`
	Seconds      float64  `json:"seconds"`
}

// Source is the commit that was published.
type Source struct {
	Commit     string    `json:"commit"`
	Subject    string    `json:"subject"`
	Time       time.Time `json:"time,omitzero"` // unknown after a rollback
	Repository string    `json:"repository,omitempty"`
}

// Image is what is in the registry.
type Image struct {
	Repository    string `json:"repository"`
	Tag           string `json:"tag"`
	Digest        string `json:"digest"`
	AlreadyThere  bool   `json:"alreadyThere"`
	UploadedBytes int64  `json:"uploadedBytes"`
	// BuildDigest is that of this build, where it differs from what was published from the same inputs.
	BuildDigest string `json:"buildDigest,omitempty"`
	// Rebuild is there where the commit was published before, from other inputs.
	Rebuild *Rebuild `json:"rebuild,omitempty"`
	// Signature is there where one was asked for.
	Signature *Signature `json:"signature,omitempty"`
}

// Reference is the image by tag and digest.
func (i Image) Reference() string { return i.Repository + ":" + i.Tag + "@" + i.Digest }

// GitOps is what the manifest says.
type GitOps struct {
	Repository string `json:"repository"`
	Branch     string `json:"branch"`
	Path       string `json:"path"`
	Commit     string `json:"commit,omitempty"`
	Changed    bool   `json:"changed"`
	// Line is the changed line's number, Old and New its text: several lines where a digest of its own line changed
	// with it.
	Line     int    `json:"line"`
	Old      string `json:"old,omitempty"`
	New      string `json:"new,omitempty"`
	Attempts int    `json:"attempts"`
	// Policy is the ImagePolicy, as namespace:name, by which Flux's image automation writes the same line; empty: none.
	Policy string `json:"policy,omitempty"`
	// PullRequest is there where the change was proposed by one; Branch and Commit are its own until it is merged.
	PullRequest *PullRequest `json:"pullRequest,omitempty"`
	// Image is what the manifest names then, Was what it named before, Resource where, and At when it did.
	Image    string    `json:"image,omitempty"`
	Was      string    `json:"was,omitempty"`
	Resource Resource  `json:"resource,omitzero"`
	At       time.Time `json:"at,omitzero"`
}

// Resource is a Kubernetes resource as its manifest names it; parts that it leaves out are empty.
type Resource struct {
	Kind      string `json:"kind,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
}

// GitOpsOf is what an update of the manifest with that path came to.
func GitOpsOf(repository gitops.Repository, path string, updated gitops.UpdateResult) GitOps {
	return GitOps{
		Repository: repository.URL,
		Branch:     updated.Branch,
		Path:       path,
		Commit:     updated.Commit,
		Changed:    updated.Changed,
		Line:       updated.Change.Line,
		Old:        updated.Change.OldLine,
		New:        updated.Change.NewLine,
		Attempts:   updated.Attempts,
		Policy:     updated.Change.Policy,
		Image:      updated.Change.New.String(),
		Was:        updated.Change.Old.String(),
		Resource:   Resource{Kind: updated.Change.Kind, Namespace: updated.Change.Namespace, Name: updated.Change.Name},
		At:         time.Now().UTC(),
	}
}

// Step is a part of the run and how long it took.
type Step struct {
	Name    string  `json:"name"`
	Seconds float64 `json:"seconds"`
}

// ParseStep reads "name=1.2s", the form that the caller of a container hands finished steps on in.
func ParseStep(text string) (Step, error) {
	name, duration, found := strings.Cut(text, "=")
	took, err := time.ParseDuration(duration)
	if !found || name == "" || err != nil {
		return Step{}, fmt.Errorf("%q is no step: want name=duration, such as build=1.2s", text)
	}
	return Step{Name: name, Seconds: took.Seconds()}, nil
}

// Step runs one step, as a span of its own, and takes down how long it took.
func (r *Result) Step(ctx context.Context, name string, do func(context.Context) error) error {
	start := time.Now()
	ctx, span := tracing.Begin(ctx, name, tracing.Reveal())
	err := do(ctx)
	tracing.End(span, err)
	r.Steps = append(r.Steps, Step{Name: name, Seconds: time.Since(start).Seconds()})
	return err
}

// headline says in one sentence what happened.
func (r Result) headline() string {
	if r.Rollout != nil && !r.Rollout.Available {
		return r.outcome() + ", but its rollout was not seen"
	}
	return r.outcome()
}

func (r Result) outcome() string {
	switch {
	case r.DryRun && r.GitOps.Changed:
		return "Dry run: nothing was pushed. This would be the change"
	case r.DryRun:
		return "Dry run: nothing was pushed, and the manifest names this image already"
	case r.GitOps.PullRequest != nil && !r.GitOps.PullRequest.Merged && r.GitOps.Changed:
		return "A pull request is open; nothing is rolled out before it is merged"
	case r.Rollback && !r.Changed:
		return "Nothing to do: the manifest names this image already"
	case r.Rollback:
		return "Rolled back"
	case !r.Changed:
		return "Nothing to do: this commit is published already"
	case !r.GitOps.Changed && r.Image.AlreadyThere:
		return "Image signed; the manifest named it already"
	case !r.GitOps.Changed:
		return "Image pushed; the manifest named it already"
	default:
		return "Published"
	}
}

// row is one line of the report.
type row struct{ name, value string }

func (r Result) rows() []row {
	image := "pushed, " + bytes(r.Image.UploadedBytes) + " sent"
	if r.Image.AlreadyThere {
		image = "in the registry already, nothing sent"
	} else if r.DryRun {
		image = "not in the registry yet"
	}
	rows := []row{
		{"commit", strings.TrimSpace(rendering.ShortSHA(r.Source.Commit) + " " + r.Source.Subject)},
		{"image", r.Image.Repository + ":" + r.Image.Tag},
		{"digest", r.Image.Digest},
		{"registry", image},
	}
	if r.Image.Rebuild != nil {
		rows = append(rows, row{"rebuild", r.Image.Rebuild.words()})
	}
	if r.Image.BuildDigest != "" {
		rows = append(rows, row{"this build", r.Image.BuildDigest + ": made from the same inputs, and yet it differs; check-blog --twice tells why"})
	}
	rows = append(rows, r.Image.Signature.rows()...)
	rows = append(rows, row{"manifest", r.GitOps.Repository + " " + r.GitOps.Branch + " " + r.GitOps.Path})
	if r.GitOps.Changed && r.GitOps.Commit != "" {
		commit := rendering.ShortSHA(r.GitOps.Commit)
		if r.GitOps.Attempts > 1 {
			commit += fmt.Sprintf(" (pushed at attempt %d, others were faster)", r.GitOps.Attempts)
		}
		rows = append(rows, row{"gitops commit", commit})
	}
	if r.GitOps.PullRequest != nil {
		rows = append(rows, row{"pull request", r.GitOps.PullRequest.words()})
	}
	if r.Hugo.Version != "" {
		rows = append(rows, row{"hugo", r.Hugo.Version + ", from " + r.Hugo.From})
	}
	rows = append(rows, r.Headers.rows()...)
	if r.Failed != nil {
		rows = append(rows, row{"went back from", r.Failed.Image}, row{"since", oneLine(r.Failed.Failure())})
	}
	if r.Rollout != nil {
		rows = append(rows, r.Rollout.rows(r.GitOps.Changed)...)
	}
	if r.GitOps.Policy != "" {
		rows = append(rows, row{"warning", fmt.Sprintf("line %d is marked for Flux's image automation, which writes the tag that the ImagePolicy %s "+
			"chooses over this commit at its next run: remove the marker, or suspend the ImageUpdateAutomation", r.GitOps.Line, r.GitOps.Policy)})
	}
	return rows
}

// Text is the report for a person.
func (r Result) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", r.headline())
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	for _, row := range r.rows() {
		fmt.Fprintf(table, "  %s\t%s\n", row.name, row.value)
	}
	table.Flush()
	if r.GitOps.Changed {
		fmt.Fprintf(&b, "\n%s", r.diff())
	}
	b.WriteString("\n")
	for _, step := range r.Steps {
		fmt.Fprintf(table, "  %s\t%6.2f s\n", step.Name, step.Seconds)
	}
	fmt.Fprintf(table, "  in all\t%6.2f s\n", r.Seconds)
	table.Flush()
	b.WriteString(r.warningText())
	b.WriteString(r.Headers.text())
	return b.String()
}

// Markdown is the report for GitHub's job summary.
func (r Result) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n| | |\n|---|---|\n", r.headline())
	for _, row := range r.rows() {
		fmt.Fprintf(&b, "| %s | %s |\n", row.name, rendering.Code(row.value))
	}
	if r.GitOps.Changed {
		fmt.Fprintf(&b, "\n```diff\n%s```\n", r.diff())
	}
	b.WriteString("\n| step | seconds |\n|---|---:|\n")
	for _, step := range r.Steps {
		fmt.Fprintf(&b, "| %s | %.2f |\n", step.Name, step.Seconds)
	}
	fmt.Fprintf(&b, "| in all | %.2f |\n", r.Seconds)
	b.WriteString(r.warningMarkdown())
	b.WriteString(r.Headers.markdown())
	return b.String()
}

// diff is the change of the manifest as a unified diff without context.
func (r Result) diff() string {
	removed, added := strings.Split(r.GitOps.Old, "\n"), strings.Split(r.GitOps.New, "\n")
	if len(removed) == len(added) {
		for i := range removed {
			removed[i], added[i] = shortened(removed[i], added[i])
		}
	}
	return fmt.Sprintf("--- a/%[1]s\n+++ b/%[1]s\n@@ -%[2]s +%[3]s @@\n%[4]s%[5]s", r.GitOps.Path,
		hunk(r.GitOps.Line, removed), hunk(r.GitOps.Line, added), marked("-", removed), marked("+", added))
}

// A manifest of JSON may be one line of megabytes, and GitHub refuses reports and descriptions of that size.
const (
	longLine = 300 // bytes, from which on a line is shortened
	around   = 80  // bytes that are left of it on either side of the change
)

// shortened are two versions of a line, of a long one what differs.
func shortened(was, is string) (string, string) {
	shorter := min(len(was), len(is))
	if max(len(was), len(is)) <= longLine {
		return was, is
	}
	var before, after int // bytes that both have in common
	for before < shorter && was[before] == is[before] {
		before++
	}
	for after < shorter-before && was[len(was)-1-after] == is[len(is)-1-after] {
		after++
	}
	before, after = max(0, before-around), max(0, after-around)
	cut := func(line string) string {
		text := strings.ToValidUTF8(line[before:len(line)-after], "")
		if before > 0 {
			text = "…" + text
		}
		if after > 0 {
			text += "…"
		}
		return text
	}
	return cut(was), cut(is)
}

// hunk is a range of lines as a unified diff has it: a count of 1 is left out.
func hunk(first int, lines []string) string {
	if len(lines) == 1 {
		return fmt.Sprint(first)
	}
	return fmt.Sprintf("%d,%d", first, len(lines))
}

func marked(mark string, lines []string) string {
	return mark + strings.Join(lines, "\n"+mark) + "\n"
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// bytes writes a size in the unit that fits.
func bytes(n int64) string {
	switch {
	case n < 1000:
		return fmt.Sprintf("%d B", n)
	case n < 1000*1000:
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	default:
		return fmt.Sprintf("%.1f MB", float64(n)/1e6)
	}
}
