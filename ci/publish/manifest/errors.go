package manifest

import (
	"fmt"
	"strings"
)

// SyntaxError says that the manifest is not YAML that can be trusted to mean one thing.
type SyntaxError struct {
	Line     int // counted from 1, as the YAML parser sees it; 0 where it does not know
	LastLine int // where not 0 the problem is somewhere from Line to LastLine
	Problem  string
}

func (e *SyntaxError) Error() string {
	if e.Line == 0 {
		return "invalid YAML: " + e.Problem
	}
	if e.LastLine > e.Line {
		return fmt.Sprintf("invalid YAML between lines %d and %d: %s", e.Line, e.LastLine, e.Problem)
	}
	return fmt.Sprintf("invalid YAML at line %d: %s", e.Line, e.Problem)
}

// ArgumentError says that a selector, tag or digest cannot be used whatever the manifest holds.
type ArgumentError struct {
	What, Value, Problem string
}

func (e *ArgumentError) Error() string {
	return fmt.Sprintf("%s %q %s", e.What, e.Value, e.Problem)
}

// NotFoundError says that nothing matches the selector. Seen is every image reference of the manifest.
type NotFoundError struct {
	Selector Selector
	Seen     []Location
}

func (e *NotFoundError) Error() string {
	if len(e.Seen) == 0 {
		return fmt.Sprintf("%s: not found; the manifest holds no image reference", e.Selector)
	}
	return fmt.Sprintf("%s: not found; the manifest holds\n%s\n"+
		"address one by its repository, --container and --resource Kind/name", e.Selector, list(e.Seen))
}

// AmbiguousError says that more than one reference matches the selector.
type AmbiguousError struct {
	Selector   Selector
	Candidates []Location
}

func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%s: found %d times\n%s\n"+
		"address one by --container (a name, or a path as listed) or --resource Kind/name (or Kind/namespace/name)",
		e.Selector, len(e.Candidates), list(e.Candidates))
}

func list(locations []Location) string {
	lines := make([]string, len(locations))
	for i, l := range locations {
		lines[i] = "  " + l.String()
	}
	return strings.Join(lines, "\n")
}

// StaleDigestError says that a digest would keep the old image running: a digest of its own key stands beside the tag,
// and wins over it, but no new digest was given.
type StaleDigestError struct {
	Location Location
}

func (e *StaleDigestError) Error() string {
	return fmt.Sprintf("%s: the digest written there wins over a new tag; "+
		"pin the new digest as well, or remove the digest key from the manifest", e.Location)
}

// UnsupportedError says that the reference was found but is written in a way that cannot be edited in place.
type UnsupportedError struct {
	Location Location
	Reason   string // what stands in the way, and what to do
}

func (e *UnsupportedError) Error() string {
	return fmt.Sprintf("%s: %s", e.Location, e.Reason)
}

// InternalError says that an edit failed its last check, so that nothing was changed. It is a defect of this package.
type InternalError struct {
	Location Location
	Problem  string
}

func (e *InternalError) Error() string {
	return fmt.Sprintf("%s: internal error, nothing was changed: %s; please report it with the manifest", e.Location, e.Problem)
}
