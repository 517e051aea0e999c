package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tazlab.net/castle/ci/test/drill/stories"
	"tazlab.net/castle/ci/test/tell"
)

// result is what became of a test; its subtests belong to it.
type result struct {
	action string // "pass", "fail", "skip", or "" where it has not ended
	output strings.Builder
	told   map[string][]tell.Line // by the full name of the test or subtest
	order  []string               // of these names
}

// results are those of all tests.
type results struct {
	tests  map[stories.Test]*result
	builds map[string]*strings.Builder // what compiling said, and what no test printed, by the package
	broken []string                    // packages that failed
}

func newResults() *results {
	return &results{tests: map[stories.Test]*result{}, builds: map[string]*strings.Builder{}}
}

// below is where packages of ci begin in their paths.
const below = "tazlab.net/castle/ci/"

// take takes an event.
func (r *results) take(e event) {
	folder := strings.TrimPrefix(e.Package, below)
	if e.Test == "" {
		if e.Output != "" {
			if r.builds[folder] == nil {
				r.builds[folder] = &strings.Builder{}
			}
			r.builds[folder].WriteString(e.Output)
		}
		if e.Action == "fail" {
			r.broken = append(r.broken, folder)
		}
		return
	}
	name, _, sub := strings.Cut(e.Test, "/")
	of := r.tests[stories.Test{Package: folder, Name: name}]
	if of == nil {
		of = &result{told: map[string][]tell.Line{}}
		r.tests[stories.Test{Package: folder, Name: name}] = of
	}
	of.output.WriteString(e.Output)
	if line, is := tell.Read(e.Output); is {
		if of.told[e.Test] == nil {
			of.order = append(of.order, e.Test)
		}
		of.told[e.Test] = append(of.told[e.Test], line)
	}
	if e.ends() && !sub {
		of.action = e.Action
	}
}

// failures are the outputs of all that failed, in full.
func (r *results) failures() string {
	var out strings.Builder
	byName := func(a, b stories.Test) int { return strings.Compare(a.Package+a.Name, b.Package+b.Name) }
	for _, test := range slices.SortedFunc(maps.Keys(r.tests), byName) {
		if of := r.tests[test]; of.action != "pass" {
			fmt.Fprintf(&out, "\n%s of ci/%s:\n%s", test.Name, test.Package, of.output.String())
		}
	}
	for _, folder := range r.broken {
		if text := r.builds[folder]; text != nil {
			fmt.Fprintf(&out, "\nci/%s:\n%s", folder, text.String())
		}
	}
	return out.String()
}
