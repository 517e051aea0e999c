// Package stories is the table of all faults that happened to somebody once and must stay mended, and of the tests that play them.
// docs/architecture.md shows it, and `make drill` goes by it.
package stories

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Story is one of them.
type Story struct {
	Name    string
	Outcome string // what must happen
	Tests   []Test // none: no test plays it yet
}

// Test is one that plays a story.
type Test struct {
	Package string // its folder below ci
	Name    string // "TestAGhostIsNamed"
}

// Folders below ci whose tests keep every core busy: each is played by itself.
const (
	Scenarios = "test/scenarios" // start worlds
	EndToEnd  = "test/e2e"       // call an engine
)

// All are the stories, those of publishing first.
func All() []Story { return slices.Concat(publishing, clusters) }

// in are tests of one package.
func in(folder string, names ...string) []Test {
	var list []Test
	for _, name := range names {
		list = append(list, Test{folder, name})
	}
	return list
}

// also appends tests of further packages.
func also(lists ...[]Test) []Test { return slices.Concat(lists...) }

// Uncovered is what a table says of a story that no test plays.
const Uncovered = "not covered yet"

// Markdown is the table of all.
func Markdown(all []Story) string {
	var out strings.Builder
	out.WriteString("| scenario | outcome | test |\n|---|---|---|\n")
	for _, story := range all {
		fmt.Fprintf(&out, "| `%s` | %s | %s |\n", story.Name, story.Outcome, story.tests())
	}
	return out.String()
}

// tests names them, and each package once.
func (s Story) tests() string {
	if len(s.Tests) == 0 {
		return Uncovered
	}
	var list []string
	last := ""
	for _, test := range s.Tests {
		name := test.Name
		if test.Package != last {
			name = fmt.Sprintf("`%s` %s", path.Base(test.Package), name)
		}
		last = test.Package
		list = append(list, name)
	}
	return strings.Join(list, ", ")
}
