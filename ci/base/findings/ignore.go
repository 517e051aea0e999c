package findings

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// IgnoreList are the findings that an author does not want to hear of.
type IgnoreList []ignored

type ignored struct {
	rule    string
	pattern *regexp.Regexp // nil for the whole rule
}

// ParseIgnore reads the entries "rule" and "rule:pattern" of a check that has these rules. Its error names all mistakes.
func ParseIgnore(entries, rules []string) (IgnoreList, error) {
	var list IgnoreList
	var mistakes []error
	for _, entry := range entries {
		rule, pattern, narrowed := strings.Cut(entry, ":")
		if !slices.Contains(rules, rule) {
			mistakes = append(mistakes, fmt.Errorf("ignore %q: %q is no rule; want one of %s", entry, rule, strings.Join(rules, ", ")))
			continue
		}
		if narrowed && pattern == "" {
			mistakes = append(mistakes, fmt.Errorf("ignore %q: nothing stands after the colon; write a pattern, or %q for the whole rule", entry, rule))
			continue
		}
		one := ignored{rule: rule}
		if narrowed {
			one.pattern = glob(pattern)
		}
		list = append(list, one)
	}
	return list, errors.Join(mistakes...)
}

// glob is a pattern in which * stands for any characters and ? for one. A slash is no border, unlike in path.Match: folders
// are nested, and a cause is no path.
func glob(pattern string) *regexp.Regexp {
	return regexp.MustCompile(`(?s)^` + strings.NewReplacer(`\*`, `.*`, `\?`, `.`).Replace(regexp.QuoteMeta(pattern)) + `$`)
}

func (l IgnoreList) match(finding Finding) bool {
	for _, one := range l {
		if one.rule == finding.Rule &&
			(one.pattern == nil || one.pattern.MatchString(finding.Cause) || one.pattern.MatchString(finding.File)) {
			return true
		}
	}
	return false
}
