package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"tazlab.net/castle/ci/test/drill/stories"
	"tazlab.net/castle/ci/test/tell"
)

// row is one story as it was played.
type row struct {
	Story, Outcome string
	Injected, Seen []string
	Recovered      string
}

// table is all of them, with how many ended in which way.
type table struct {
	Rows                    []row
	Held, Failed, Uncovered int
}

// held is the outcome of a story all of whose tests passed. No other one is good.
const held = "held"

// tabulate makes the table. A test that was skipped, or has not ended, is no proof of anything.
func tabulate(all []stories.Story, played *results) table {
	var t table
	for _, story := range all {
		r := row{Story: story.Name, Outcome: outcome(story, played)}
		switch r.Outcome {
		case held:
			t.Held++
		case stories.Uncovered:
			t.Uncovered++
		default:
			t.Failed++
		}
		r.retell(story, played)
		t.Rows = append(t.Rows, r)
	}
	return t
}

// outcome is how the worst of a story's tests ended.
func outcome(story stories.Story, played *results) string {
	if len(story.Tests) == 0 {
		return stories.Uncovered
	}
	var bad []string
	for _, test := range story.Tests {
		action := ""
		if of := played.tests[test]; of != nil {
			action = of.action
		}
		switch action {
		case "pass":
		case "fail":
			bad = append(bad, "FAILED: "+test.Name)
		case "skip":
			bad = append(bad, "SKIPPED: "+test.Name)
		default:
			bad = append(bad, "NOT RUN: "+test.Name)
		}
	}
	if len(bad) > 0 {
		return strings.Join(bad, "; ")
	}
	return held
}

// retell puts into the row what the story's tests told. One that told nothing says by its name what it has observed, where it passed.
func (r *row) retell(story stories.Story, played *results) {
	var longest, refused time.Duration
	for _, test := range story.Tests {
		of := played.tests[test]
		if of == nil {
			continue
		}
		observed := false
		for _, name := range of.order {
			for _, line := range of.told[name] {
				switch line.Kind {
				case tell.Injected:
					r.Injected = append(r.Injected, line.Text)
				case tell.Seen:
					observed = true
					r.Seen = append(r.Seen, line.Text)
					refused = max(refused, line.Took)
				}
			}
			if text, took := recovery(of.told[name]); took > longest {
				longest, r.Recovered = took, text
			}
		}
		if text := sentence(test.Name); !observed && of.action == "pass" && strings.Contains(text, " ") {
			r.Seen = append(r.Seen, text)
		}
	}
	if r.Recovered == "" && refused > 0 {
		r.Recovered = "told after " + short(refused)
	}
	of := func(text string) bool { return text == story.Name || strings.HasPrefix(text, story.Name+"=") }
	if slices.ContainsFunc(r.Injected, of) { // a test of several stories
		r.Injected = slices.DeleteFunc(r.Injected, func(text string) bool { return !of(text) })
	}
}

// recovery is the longest way from a fault back: the calls that ended well after it, up to the first one that leaves a cluster, or none.
func recovery(lines []tell.Line) (text string, longest time.Duration) {
	var calls []string
	var sum time.Duration
	struck := false
	finish := func() {
		if sum > longest {
			longest, text = sum, strings.Join(calls, ", ")
		}
		calls, sum = nil, 0
	}
	for _, line := range lines {
		switch {
		case line.Kind == tell.Injected:
			finish()
			struck = true
		case line.Kind == tell.Ended && struck:
			calls, sum = append(calls, line.Text+" "+short(line.Took)), sum+line.Took
			if line.Text != "destroy" {
				finish()
				struck = false
			}
		}
	}
	finish()
	return text, longest
}

func short(d time.Duration) string {
	if d < 10*time.Second {
		return fmt.Sprintf("%.1f s", d.Seconds())
	}
	if d < 2*time.Minute {
		return fmt.Sprintf("%.0f s", d.Seconds())
	}
	return fmt.Sprintf("%.0f min", d.Minutes())
}

// Markdown is the table below a line that sums it up. A story that no test plays counts as nothing.
func (t table) Markdown() string {
	var out strings.Builder
	fmt.Fprintf(&out, "**%d of %d stories held**, %d failed, %d not covered yet.\n\n", t.Held, len(t.Rows), t.Failed, t.Uncovered)
	out.WriteString("| story | injected | seen | outcome | time to recovery |\n|---|---|---|---|---|\n")
	for _, r := range t.Rows {
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s | %s |\n", r.Story, cell(r.Injected), cell(r.Seen), r.Outcome, r.Recovered)
	}
	return out.String()
}
