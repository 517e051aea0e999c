package manifest

import (
	"slices"
	"strings"
)

// Selector addresses one image reference in a manifest. Empty fields select everything.
type Selector struct {
	// Image is the repository without tag or digest, e.g. "tazzo/tazlab.net" or "localhost:5000/blog". docker.io/ and
	// library/ in front count as nothing.
	Image string
	// Container is the name of a container, the name of a kustomize images entry, the key that holds a Helm image
	// ("blog" for values.blog.image, "image" for values.image), or a Path as Find reports it.
	Container string
	// Resource is "Kind/name" or "Kind/namespace/name" of the resource, Kind in any case.
	Resource string
}

func (s Selector) String() string {
	words := []string{"image " + s.Image}
	if s.Container != "" {
		words = append(words, "container "+s.Container)
	}
	if s.Resource != "" {
		words = append(words, "resource "+s.Resource)
	}
	return strings.Join(words, ", ")
}

func (s Selector) check() error {
	if r := ParseReference(s.Image); r.Repository != s.Image {
		return &ArgumentError{What: "image", Value: s.Image, Problem: "must be a repository without tag or digest"}
	}
	if n := strings.Count(s.Resource, "/"); s.Resource != "" && n != 1 && n != 2 {
		return &ArgumentError{What: "resource", Value: s.Resource, Problem: "must be Kind/name or Kind/namespace/name"}
	}
	return nil
}

func (s Selector) matches(t *target) bool {
	return (s.Image == "" || canonical(s.Image) == canonical(t.Repository)) &&
		(s.Container == "" || s.Container == t.Path || slices.Contains(t.names, s.Container)) &&
		s.matchesResource(t)
}

func (s Selector) matchesResource(t *target) bool {
	if s.Resource == "" {
		return true
	}
	kind, name, _ := strings.Cut(s.Resource, "/")
	if namespace, rest, ok := strings.Cut(name, "/"); ok {
		if namespace != t.Namespace {
			return false
		}
		name = rest
	}
	return strings.EqualFold(kind, t.Kind) && name == t.Name
}
