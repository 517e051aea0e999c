// Package warning holds what a publish reports about a site without failing, and folds what repeats into one line.
package warning

import "fmt"

// Warning is one thing in the site that its author should change.
type Warning struct {
	// Text is a whole sentence with the fix.
	Text string `json:"text"`
	// Kind is what warnings of its kind have in common, as it reads behind their number: "terms of tags are …". Empty: it is
	// shown by itself.
	Kind string `json:"kind,omitempty"`
	// Example is what this one adds to its kind.
	Example string `json:"example,omitempty"`
}

// few is how many warnings of a kind are shown as they are.
const few = 2

// Texts are the sentences of all warnings.
func Texts(warnings []Warning) []string {
	var texts []string
	for _, w := range warnings {
		texts = append(texts, w.Text)
	}
	return texts
}

// Lines are the warnings as a person reads them: a kind with more than two of them is one line, in the place of the first,
// with its number, two examples and the call that lists all.
func Lines(warnings []Warning, listAll string) []string {
	kinds := map[string][]Warning{}
	for _, w := range warnings {
		kinds[w.Kind] = append(kinds[w.Kind], w)
	}
	var lines []string
	for _, w := range warnings {
		alike := kinds[w.Kind]
		switch {
		case w.Kind == "" || len(alike) <= few:
			lines = append(lines, w.Text)
		case w == alike[0]:
			lines = append(lines, fmt.Sprintf("%d %s. Examples: %s; %s. All: %s", len(alike), w.Kind, w.Example, alike[1].Example, listAll))
		}
	}
	return lines
}
