package findings

import (
	"cmp"
	"fmt"
	"slices"
)

// ExamplesShown is how many findings of a group the report shows: enough to see whether they are alike.
const ExamplesShown = 3

// Group are the findings of one rule that have the same cause. One change of a template or of the content mends them all.
type Group struct {
	Rule     string   `json:"rule"`
	Severity Severity `json:"severity"`
	Cause    string   `json:"cause"`
	Findings int      `json:"findings"`
	Files    int      `json:"files"` // that have such a finding

	examples []Finding
}

// groups puts sorted findings together: errors first, and what is most frequent before the rest.
func groups(findings []Finding) []Group {
	type key struct{ rule, cause string }
	members := make(map[key][]Finding)
	for _, finding := range findings {
		key := key{finding.Rule, finding.Cause}
		members[key] = append(members[key], finding)
	}
	list := make([]Group, 0, len(members))
	for key, findings := range members {
		first := slices.CompactFunc(slices.Clone(findings), func(a, b Finding) bool { return a.File == b.File })
		list = append(list, Group{
			Rule: key.rule, Severity: findings[0].Severity, Cause: key.cause, Findings: len(findings), Files: len(first),
			examples: examples(first, findings),
		})
	}
	slices.SortFunc(list, func(a, b Group) int {
		return cmp.Or(
			cmp.Compare(a.Severity, b.Severity), // "error" is before "warning"
			cmp.Compare(b.Findings, a.Findings),
			cmp.Compare(a.Rule, b.Rule),
			cmp.Compare(a.Cause, b.Cause),
		)
	})
	return list
}

// examples takes the first finding of each file, and more of the same files only where there are few.
func examples(first, all []Finding) []Finding {
	shown := first[:min(len(first), ExamplesShown)]
	for _, finding := range all {
		if len(shown) == ExamplesShown {
			break
		}
		if !slices.Contains(shown, finding) {
			shown = append(slices.Clip(shown), finding)
		}
	}
	return shown
}

// place is the finding as compilers print theirs, so that editors find it.
func (f Finding) place() string {
	return Cut(fmt.Sprintf("%s:%d: %s", f.File, f.Line, f.Message), Widest)
}

// How much is shown of a line of the report, and of a reference that is quoted in it, in characters: an attribute can hold a
// whole image.
const (
	Widest       = 240
	WidestQuoted = 120
)

// Cut shortens a text to so many characters.
func Cut(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most-1]) + "…"
	}
	return text
}
