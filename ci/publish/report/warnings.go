package report

import (
	"fmt"
	"slices"
	"strings"

	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/publish/warning"
)

// listAll is the call whose result has every warning and every weak point: the JSON form folds nothing.
const listAll = "dagger call publish-blog --dry-run --format JSON"

// Warn adds warnings about the site. Nothing of the publish depends on them.
func (r *Result) Warn(warnings []warning.Warning) {
	r.Warnings = warning.Texts(warnings)
	if lines := warning.Lines(warnings, listAll); !slices.Equal(lines, r.Warnings) {
		r.WarningLines = lines
	}
}

func (r Result) warningLines() []string {
	if len(r.WarningLines) > 0 {
		return r.WarningLines
	}
	return r.Warnings
}

// warningText is the section of the report for a person, empty without warnings.
func (r Result) warningText() string {
	var b strings.Builder
	for i, line := range r.warningLines() {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "  warning: %s\n", line) // unbroken: it may end in a command to copy
	}
	return b.String()
}

// warningMarkdown is the same for GitHub's job summary.
func (r Result) warningMarkdown() string {
	var b strings.Builder
	for i, line := range r.warningLines() {
		if i == 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "- warning: %s\n", rendering.Code(line))
	}
	return b.String()
}
