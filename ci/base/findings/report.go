// Package findings is what a check found, as it is reported: findings with a rule and a place, groups of those with one cause,
// and which of them are left out because they are ignored or known.
package findings

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tazlab.net/castle/ci/base/rendering"
)

// Severity says what a finding means for what is checked.
type Severity string

const (
	// Error breaks it, and fails the check.
	Error Severity = "error"
	// Warning is worth a look.
	Warning Severity = "warning"
)

// Finding is one thing to mend.
type Finding struct {
	File     string   `json:"file"` // relative to the folder that is checked, with slashes
	Line     int      `json:"line"` // from 1; a minified page is often one line, so the message quotes what it is about
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	Cause    string   `json:"cause"`   // what findings that are mended together have in common: an element and its place, a target, a host
	Message  string   `json:"message"` // what is wrong and how to mend it
}

// Report is the result of a check, to be embedded into the check's own, which says what was looked at. Findings are sorted by
// file, line, rule and message; two checks of the same folder give the same report. Its JSON form is part of the interface:
// fields are added, never renamed.
type Report struct {
	Errors   int `json:"errors"`
	Warnings int `json:"warnings"`
	// Ignored and Known are findings that the options left out, Known those of the baseline.
	Ignored int `json:"ignored"`
	Known   int `json:"known"`
	// Gone are the entries of the baseline of which there are fewer findings than it holds.
	Gone     int       `json:"gone"`
	Groups   []Group   `json:"groups"`
	Findings []Finding `json:"findings"`
}

// Take takes the findings over: all but those that are left out.
func (r *Report) Take(findings []Finding, severity func(rule string) Severity, ignored IgnoreList, baseline Baseline) {
	slices.SortStableFunc(findings, func(a, b Finding) int {
		return cmp.Or(
			cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line, b.Line),
			cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.Message, b.Message),
		)
	})
	kept := slices.DeleteFunc(slices.Clone(findings), ignored.match)
	r.Ignored = len(findings) - len(kept)
	r.Findings, r.Gone = baseline.unknown(kept)
	r.Known = len(kept) - len(r.Findings)
	for i := range r.Findings {
		finding := &r.Findings[i]
		finding.Severity = severity(finding.Rule)
		if finding.Severity == Error {
			r.Errors++
		} else {
			r.Warnings++
		}
	}
	r.Groups = groups(r.Findings)
}

// Text is the report for a person: each group with its examples, and a last line that counts what was checked and found.
func (r Report) Text(checked string) string {
	var text strings.Builder
	findings, files := 0, 0 // the columns' widths
	for _, group := range r.Groups {
		findings = max(findings, len(strconv.Itoa(group.Findings)))
		files = max(files, len(rendering.Count(group.Files, "file")))
	}
	for _, group := range r.Groups {
		fmt.Fprintf(&text, "%-7s  %*d in %*s  %s: %s\n", group.Severity, findings, group.Findings, files, rendering.Count(group.Files, "file"),
			group.Rule, Cut(group.Cause, Widest))
		for _, example := range group.examples {
			fmt.Fprintf(&text, "    %s\n", example.place())
		}
	}
	text.WriteString(r.stale())
	fmt.Fprintln(&text, r.Summary(checked))
	return text.String()
}

// Markdown is the report for GitHub's job summary.
func (r Report) Markdown(checked string) string {
	var text strings.Builder
	fmt.Fprintf(&text, "### %s\n", r.Summary(checked))
	if stale := r.stale(); stale != "" {
		text.WriteString("\n" + stale)
	}
	if len(r.Groups) > 0 {
		text.WriteString("\n| | rule | cause | findings | files | for example |\n|---|---|---|---:|---:|---|\n")
	}
	for _, group := range r.Groups {
		var examples []string
		for _, example := range group.examples {
			examples = append(examples, rendering.Code(example.place()))
		}
		fmt.Fprintf(&text, "| %s | %s | %s | %d | %d | %s |\n", group.Severity, group.Rule, rendering.Code(Cut(group.Cause, Widest)),
			group.Findings, group.Files, strings.Join(examples, "<br>"))
	}
	return text.String()
}

// Summary is the report in a line, which begins with what was checked, such as "2 pages, 1 link".
func (r Report) Summary(checked string) string {
	summary := fmt.Sprintf("%s checked: %s, %s", checked, rendering.Count(r.Errors, "error"), rendering.Count(r.Warnings, "warning"))
	if r.Known > 0 {
		summary += fmt.Sprintf(", %d in the baseline", r.Known)
	}
	if r.Ignored > 0 {
		summary += fmt.Sprintf(", %d ignored", r.Ignored)
	}
	return summary
}

// stale is the line about a baseline that holds too much, if it does.
func (r Report) stale() string {
	switch r.Gone {
	case 0:
		return ""
	case 1:
		return "1 entry of the baseline no longer occurs, or less often: write the baseline anew\n"
	default:
		return fmt.Sprintf("%d entries of the baseline no longer occur, or less often: write the baseline anew\n", r.Gone)
	}
}
