package gitopscheck

import (
	"fmt"
	"strings"

	"tazlab.net/castle/ci/base/findings"
	"tazlab.net/castle/ci/base/rendering"
)

// Report is what was looked at and what was found.
type Report struct {
	Files          int `json:"files"` // YAML files read
	Clusters       int `json:"clusters"`
	Kustomizations int `json:"kustomizations"`
	Overlays       int `json:"overlays"` // that no Kustomization builds
	Objects        int `json:"objects"`  // that Flux applies
	// Unchecked are kinds without a schema.
	Unchecked []Unchecked `json:"unchecked,omitempty"`
	// Notes say what else could not be looked at, and why.
	Notes []string `json:"notes"`
	findings.Report
}

// Unchecked is a kind without a schema, with the number of its objects.
type Unchecked struct {
	Kind    string `json:"kind"` // as in notification.toolkit.fluxcd.io/v1beta3 Alert
	Objects int    `json:"objects"`
}

// Text is the report for a person.
func (r Report) Text() string {
	if r.nothing() {
		return nothing
	}
	return r.notes("note     ") + r.Report.Text(r.checked())
}

// Markdown is the report for GitHub's job summary.
func (r Report) Markdown() string {
	if r.nothing() {
		return nothing
	}
	text := r.Report.Markdown(r.checked())
	if notes := r.notes("- "); notes != "" {
		text += "\n" + notes
	}
	return text
}

const nothing = "there are no Flux Kustomizations and no overlays here\n"

func (r Report) nothing() bool {
	return r.Kustomizations == 0 && r.Overlays == 0 && len(r.Findings) == 0
}

func (r Report) checked() string {
	return strings.Join([]string{rendering.Count(r.Clusters, "cluster"), rendering.Count(r.Kustomizations, "Kustomization"),
		rendering.Count(r.Overlays, "other overlay"), rendering.Count(r.Objects, "object")}, ", ")
}

func (r Report) notes(mark string) string {
	var text strings.Builder
	for _, note := range r.Notes {
		fmt.Fprintf(&text, "%s%s\n", mark, findings.Cut(note, findings.Widest))
	}
	if len(r.Unchecked) > 0 {
		objects := 0
		var kinds []string
		for _, kind := range r.Unchecked {
			objects += kind.Objects
			kinds = append(kinds, kind.Kind)
		}
		fmt.Fprintf(&text, "%s%s of %s without a schema, not checked (--crds takes a folder with definitions): %s\n", mark,
			rendering.Count(objects, "object"), rendering.Count(len(kinds), "kind"), findings.Cut(strings.Join(kinds, ", "), 2*findings.Widest))
	}
	return text.String()
}
