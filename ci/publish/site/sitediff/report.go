package sitediff

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tazlab.net/castle/ci/base/rendering"
)

// Report is what differs between two builds. Its JSON form is part of the interface: fields are added, never renamed.
type Report struct {
	Files     int     `json:"files"`     // in the first build
	Differing int     `json:"differing"` // files that differ, or that one build alone has
	Causes    []Cause `json:"causes"`    // those with the most files first
}

// Cause is why files differ. A file can have several causes.
type Cause struct {
	Name     string    `json:"name"`
	What     string    `json:"what"`
	Fix      string    `json:"fix"`
	Files    int       `json:"files"`
	Examples []Example `json:"examples"` // the first few files, by name
}

// Example is what a file holds in the two builds, shortened.
type Example struct {
	File   string `json:"file"`
	First  string `json:"first,omitempty"`
	Second string `json:"second,omitempty"`
}

// examples is how many a cause has.
const examples = 3

func (r *Report) add(why cause, example Example) {
	at := slices.IndexFunc(r.Causes, func(c Cause) bool { return c.Name == why.name })
	if at < 0 {
		at = len(r.Causes)
		r.Causes = append(r.Causes, Cause{Name: why.name, What: why.what, Fix: why.fix})
	}
	known := &r.Causes[at]
	known.Files++
	if len(known.Examples) < examples {
		known.Examples = append(known.Examples, example)
	}
}

func (r *Report) sort() {
	slices.SortFunc(r.Causes, func(a, b Cause) int { return cmp.Or(cmp.Compare(b.Files, a.Files), cmp.Compare(a.Name, b.Name)) })
}

// headline counts.
func (r Report) headline() string {
	if r.Differing == 0 {
		return fmt.Sprintf("Both builds are the same, all %d files", r.Files)
	}
	return fmt.Sprintf("The builds differ in %d of %d files", r.Differing, r.Files)
}

// Text is the report for a person.
func (r Report) Text() string {
	var b strings.Builder
	fmt.Fprintln(&b, r.headline())
	for _, c := range r.Causes {
		fmt.Fprintf(&b, "\n%s: %s (%d)\n  %s\n", c.Name, c.What, c.Files, c.Fix)
		for _, e := range c.Examples {
			fmt.Fprintf(&b, "    %s\n", e.File)
			for _, line := range []struct{ sign, text string }{{"-", e.First}, {"+", e.Second}} {
				if line.text != "" {
					fmt.Fprintf(&b, "      %s %s\n", line.sign, line.text)
				}
			}
		}
	}
	return b.String()
}

// Markdown is the report for GitHub's job summary.
func (r Report) Markdown() string {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n", r.headline())
	if len(r.Causes) > 0 {
		b.WriteString("\n| cause | files | for example | first build | second build | fix |\n|---|---:|---|---|---|---|\n")
	}
	for _, c := range r.Causes {
		e := c.Examples[0]
		fmt.Fprintf(&b, "| %s: %s | %d | %s | %s | %s | %s |\n", c.Name, c.What, c.Files,
			rendering.Code(e.File), rendering.Code(e.First), rendering.Code(e.Second), c.Fix)
	}
	return b.String()
}
