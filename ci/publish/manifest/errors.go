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

// NotFoundError says that nothing matches the selector.
type NotFoundError struct {
	Selector  Selector
	Seen      []Location // every image reference of the manifest
	Elsewhere []int      // lines, from 1, that hold the image under keys that are not known to hold one
}

// knownForms says where Bump finds images; the package comment has all of it.
const knownForms = "An image is found as image in a list of containers; in images of a Kustomization; and in the values of a " +
	"HelmRelease or in a values file as image, or as repository with tag or digest, of one mapping. Items of a List and " +
	"resources of a ResourceSet are read in the same way; text within a string is not."

func (e *NotFoundError) Error() string {
	elsewhere := ""
	if len(e.Elsewhere) > 0 {
		lines := strings.Trim(strings.ReplaceAll(fmt.Sprint(e.Elsewhere), " ", ", "), "[]")
		elsewhere = fmt.Sprintf("; it is named in line %s, under a key that is not known to hold an image", lines)
	}
	if len(e.Seen) == 0 {
		return fmt.Sprintf("%s: not found%s; the manifest holds no image reference. %s", e.Selector, elsewhere, knownForms)
	}
	message := fmt.Sprintf("%s: not found%s; the manifest holds\n%s\n"+
		"address one by its repository, --container and --resource Kind/name", e.Selector, elsewhere, list(e.Seen))
	if elsewhere != "" {
		message += ". " + knownForms
	}
	return message
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

// StaleDigestError says that a digest under a key beside the tag would keep the old image running, since it wins over the
// tag and was not to be replaced.
type StaleDigestError struct {
	Location Location
	Key      string // of the digest, such as "digest" or "sha"
	Line     int    // of the digest, from 1, as an editor counts
}

func (e *StaleDigestError) Error() string {
	return fmt.Sprintf("%s: the digest under the key %s in line %d wins over a new tag; "+
		"pin the new digest as well, or remove that key from the manifest", e.Location, e.Key, e.Line)
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
