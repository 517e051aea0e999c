package manifest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// Location is one image reference and where it stands.
type Location struct {
	Document  int    // number of the document in the stream, from 1
	Kind      string // of the resource; empty where there is none
	Namespace string
	Name      string
	Container string // what Selector.Container may say to address it; empty where it has no name
	Path      string // e.g. "spec.template.spec.containers[hugo-blog].image"
	Line      int    // of the tag, or of the scalar that holds the whole reference, from 1, as an editor counts
	// Policy is the ImagePolicy, as namespace:name, whose choice Flux's image automation writes there; empty without a
	// marker.
	Policy string
	Reference
}

// String is the location as one line of a list for a person.
func (l Location) String() string {
	where := fmt.Sprintf("document %d, ", l.Document)
	if r := l.resource(); r != "" {
		where += r + ", "
	}
	return oneLine(fmt.Sprintf("%s%s, line %d: %s", where, l.Path, l.Line, l.Reference))
}

// resource is Kind/namespace/name without the parts that are missing.
func (l Location) resource() string {
	parts := []string{l.Kind, l.Namespace, l.Name}
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "/")
}

// oneLine escapes line ends and other control characters, which a quoted YAML string may hold.
func oneLine(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strings.Trim(strconv.Quote(s), `"`)
	}
	return s
}

// Find returns every reference the selector matches, in the order of the manifest. No match is not an error.
// Errors: *SyntaxError, *ArgumentError.
func Find(src []byte, sel Selector) ([]Location, error) {
	if err := sel.check(); err != nil {
		return nil, err
	}
	m, err := parse(src)
	if err != nil {
		return nil, err
	}
	return locations(m.find(sel)), nil
}

// Current returns the one reference the selector matches. Errors: those of Find, *NotFoundError, *AmbiguousError.
func Current(src []byte, sel Selector) (Location, error) {
	if err := sel.checkAddress(); err != nil {
		return Location{}, err
	}
	m, err := parse(src)
	if err != nil {
		return Location{}, err
	}
	t, err := m.findOne(sel)
	if err != nil {
		return Location{}, err
	}
	return t.Location, nil
}

// checkAddress is check for a selector that has to name an image.
func (s Selector) checkAddress() error {
	if s.Image == "" {
		return &ArgumentError{What: "image", Value: "", Problem: "must name the repository to address"}
	}
	return s.check()
}

func (m *manifest) find(sel Selector) []*target {
	var found []*target
	for _, t := range m.targets {
		if sel.matches(t) {
			found = append(found, t)
		}
	}
	return found
}

func (m *manifest) findOne(sel Selector) (*target, error) {
	found := m.find(sel)
	switch len(found) {
	case 0:
		return nil, &NotFoundError{Selector: sel, Seen: locations(m.targets), Elsewhere: m.mentions(sel.Image)}
	case 1:
		return found[0], nil
	}
	return nil, &AmbiguousError{Selector: sel, Candidates: locations(found)}
}

// mentions returns the numbers of the lines that hold the image under keys where no image reference is known, the first
// three of them.
func (m *manifest) mentions(image string) []int {
	for _, t := range m.targets {
		if canonical(t.Repository) == canonical(image) {
			return nil // it is known, and another part of the selector does not match
		}
	}
	var lines []int
	var look func(n *yaml.Node)
	look = func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode && canonical(ParseReference(strings.TrimSpace(n.Value)).Repository) == canonical(image) {
			if line := m.text.line(m.text.nodeOffset(n)); len(lines) < 3 && !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
		for _, child := range n.Content {
			look(child)
		}
	}
	for _, document := range m.documents {
		look(document)
	}
	return lines
}

func locations(targets []*target) []Location {
	var all []Location
	for _, t := range targets {
		all = append(all, t.Location)
	}
	return all
}
