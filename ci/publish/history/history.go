// Package history lists what was published when, as the GitOps repository knows it, changes by hand included.
package history

import (
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/publish/gitops"
)

// List is what was published when, newest first.
type List gitops.Entries

// record is the JSON form of one entry.
type record struct {
	Time       time.Time `json:"time"`
	Action     string    `json:"action"`
	Old        string    `json:"old,omitempty"`
	New        string    `json:"new,omitempty"`
	Rebuild    int       `json:"rebuild,omitempty"` // from 2 on
	Digest     string    `json:"digest,omitempty"`
	Source     string    `json:"sourceCommit,omitempty"`
	Commit     string    `json:"gitopsCommit"`
	Author     string    `json:"author"`
	Repository string    `json:"sourceRepository,omitempty"`
}

// byHand stands for the action of a commit that castle did not make.
const byHand = "by hand"

func (l List) records() []record {
	records := make([]record, len(l))
	for i, entry := range l {
		action := string(entry.Action)
		if action == "" {
			action = byHand
		}
		records[i] = record{
			Time: entry.Time, Action: action, Old: entry.Old.String(), New: entry.New.String(), Digest: entry.Digest,
			Rebuild: rebuild(entry), Source: entry.SourceCommit, Commit: entry.Commit, Author: entry.Author, Repository: entry.SourceRepository,
		}
	}
	return records
}

// rebuild is 0 for the first image of a commit.
func rebuild(entry gitops.Entry) int {
	if number := entry.Rebuild(); number > 1 {
		return number
	}
	return 0
}

const nothingPublished = "Nothing was published yet.\n"

// MarshalJSON is a list of records, empty where nothing was published.
func (l List) MarshalJSON() ([]byte, error) { return json.Marshal(l.records()) }

// Text is the history as a table.
func (l List) Text() string {
	if len(l) == 0 {
		return nothingPublished
	}
	var b strings.Builder
	table := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "TIME (UTC)\tACTION\tIMAGE\tSOURCE\tGITOPS COMMIT\tAUTHOR")
	for _, r := range l.records() {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\n", r.Time.Format(time.DateTime), r.Action, orDash(r.New), orDash(rendering.ShortSHA(r.Source)), rendering.ShortSHA(r.Commit), r.Author)
	}
	table.Flush()
	return b.String()
}

// Markdown is the same table for GitHub's job summary.
func (l List) Markdown() string {
	if len(l) == 0 {
		return nothingPublished
	}
	var b strings.Builder
	b.WriteString("| time (UTC) | action | image | source | gitops commit | author |\n|---|---|---|---|---|---|\n")
	for _, r := range l.records() {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s |\n", r.Time.Format(time.DateTime), r.Action,
			rendering.Code(orDash(r.New)), rendering.Code(orDash(rendering.ShortSHA(r.Source))), rendering.Code(rendering.ShortSHA(r.Commit)), rendering.Code(r.Author))
	}
	return b.String()
}

func orDash(text string) string {
	if text == "" {
		return "-"
	}
	return text
}
