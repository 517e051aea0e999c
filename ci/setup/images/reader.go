package images

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"tazlab.net/castle/ci/base/digest"
)

var (
	fields   = []string{"key", "image", "tag", "digest", "purpose", "platforms", "standIn", "group"}
	standIns = []string{StandInGolang, StandInHugo, StandInNginx, StandInChromium, StandInTool, StandInNone}

	keyForm      = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	nameForm     = regexp.MustCompile(`^(localhost|[a-z0-9-]+(\.[a-z0-9-]+)+)(:[0-9]+)?(/[a-z0-9]+([._-]+[a-z0-9]+)*)+$`)
	platformForm = regexp.MustCompile(`^[a-z0-9]+/[a-z0-9]+(/[a-z0-9]+)?$`)
	markerForm   = regexp.MustCompile(`^# renovate: datasource=docker depName=(\S+)$`)

	// A tag is exact when it starts with a whole version or holds a date, as Debian's images do (bookworm-20260101).
	exactTag = regexp.MustCompile(`^v?[0-9]+\.[0-9]+\.[0-9]+([.+_-][A-Za-z0-9._-]+)?$|(^|-)20[0-9]{6}(-|$)`)
)

// entry is an image and the line it starts on.
type entry struct {
	Image
	line int
}

// reader turns YAML nodes into entries and keeps every mistake instead of stopping at the first.
type reader struct {
	file     string
	lines    []string
	mistakes []error
}

func (r *reader) mistake(line int, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if line == 0 {
		r.mistakes = append(r.mistakes, errors.New(r.file+": "+text))
		return
	}
	r.mistakes = append(r.mistakes, fmt.Errorf("%s:%d: %s", r.file, line, text))
}

func (r *reader) document(document *yaml.Node) []entry {
	if len(document.Content) == 0 {
		r.mistake(0, "is empty; it needs a list named images")
		return nil
	}
	root := document.Content[0]
	if root.Kind != yaml.MappingNode {
		r.mistake(root.Line, "must be a mapping with one list named images")
		return nil
	}
	var list []entry
	found := false
	for i := 0; i+1 < len(root.Content); i += 2 {
		name, value := root.Content[i], root.Content[i+1]
		switch {
		case name.Value != "images":
			r.mistake(name.Line, "unknown field %q; the only one at the top is images", name.Value)
		case found:
			r.mistake(name.Line, "images stands twice")
		case value.Kind != yaml.SequenceNode || len(value.Content) == 0:
			found = true
			r.mistake(name.Line, "images must be a list with at least one entry")
		default:
			found = true
			for _, node := range value.Content {
				if e, ok := r.entry(node); ok {
					list = append(list, e)
				}
			}
		}
	}
	if !found {
		r.mistake(root.Line, "has no list named images")
	}
	return list
}

func (r *reader) entry(node *yaml.Node) (entry, bool) {
	if node.Kind != yaml.MappingNode {
		r.mistake(node.Line, "an entry must be a mapping with the fields %s", strings.Join(fields, ", "))
		return entry{}, false
	}
	e := entry{line: node.Line}
	text := map[string]*string{
		"key": &e.Key, "image": &e.Name, "tag": &e.Tag, "digest": &e.Digest, "purpose": &e.Purpose, "standIn": &e.StandIn,
		"group": &e.Group,
	}
	type misfit struct {
		line int
		text string
	}
	var misfits []misfit
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		if seen[name.Value] {
			misfits = append(misfits, misfit{name.Line, fmt.Sprintf("field %q stands twice", name.Value)})
			continue
		}
		seen[name.Value] = true
		switch target := text[name.Value]; {
		case target != nil && value.Kind == yaml.ScalarNode:
			*target = value.Value
		case target != nil:
			misfits = append(misfits, misfit{value.Line, fmt.Sprintf("%s must be text", name.Value)})
		case name.Value == "platforms":
			if err := value.Decode(&e.Platforms); err != nil {
				misfits = append(misfits, misfit{value.Line, "platforms must be a list such as [linux/amd64]"})
			}
		default:
			misfits = append(misfits, misfit{name.Line,
				fmt.Sprintf("unknown field %q; known are %s", name.Value, strings.Join(fields, ", "))})
		}
	}
	// The entry's name in messages is known only now, after all of its fields were read.
	for _, m := range misfits {
		r.mistake(m.line, "%s: %s", e.label(), m.text)
	}
	r.check(e)
	return e, true
}

func (e entry) label() string {
	switch {
	case e.Key != "":
		return e.Key
	case e.Name != "":
		return e.Name
	default:
		return "entry"
	}
}

func (r *reader) check(e entry) {
	bad := func(format string, args ...any) {
		r.mistake(e.line, "%s: %s", e.label(), fmt.Sprintf(format, args...))
	}
	switch {
	case e.Key == "":
		bad("key is missing")
	case !keyForm.MatchString(e.Key):
		bad("key %q must be lower-case words joined by hyphens", e.Key)
	}
	switch {
	case e.Name == "":
		bad("image is missing")
	case !nameForm.MatchString(e.Name):
		bad("image %q is not a full name; write it with its registry and without a tag, as docker.io/library/nginx", e.Name)
	}
	switch {
	case e.Tag == "":
		bad("tag is missing")
	case e.Tag == "latest":
		bad("tag latest moves; write the exact version")
	case !exactTag.MatchString(e.Tag):
		bad("tag %q is not an exact version; it needs three numbers (1.26.4) or a date (20260101)", e.Tag)
	}
	if e.Digest != "" && !digest.Valid(e.Digest) {
		bad("digest %q is not sha256: and 64 hexadecimal digits", e.Digest)
	}
	if strings.TrimSpace(e.Purpose) == "" {
		bad("purpose is missing")
	}
	if e.Group != "" && !keyForm.MatchString(e.Group) {
		bad("group %q must be lower-case words joined by hyphens", e.Group)
	}
	if len(e.Platforms) == 0 {
		bad("platforms is missing; write for example [linux/amd64, linux/arm64]")
	}
	for _, platform := range e.Platforms {
		if !platformForm.MatchString(platform) {
			bad("platform %q is not of the form os/arch", platform)
		}
	}
	switch {
	case e.StandIn == "":
		bad("standIn is missing; it is one of %s", strings.Join(standIns, ", "))
	case !slices.Contains(standIns, e.StandIn):
		bad("standIn %q is unknown; it is one of %s", e.StandIn, strings.Join(standIns, ", "))
	}
	r.marker(e)
}

// marker looks at the text, not at the parser's comments: those go to the list instead of the entry where the first
// entry is concerned.
func (r *reader) marker(e entry) {
	above := ""
	if e.line >= 2 {
		above = strings.TrimSpace(r.lines[e.line-2])
	}
	match := markerForm.FindStringSubmatch(above)
	switch {
	case match == nil:
		r.mistake(e.line, "%s: the line above must be Renovate's marker: # renovate: datasource=docker depName=%s", e.label(), e.Name)
	case match[1] != e.Name:
		r.mistake(e.line-1, "%s: Renovate's marker watches %s, but the image is %s", e.label(), match[1], e.Name)
	}
}

func (r *reader) duplicates(list []entry) {
	keys, references := map[string]int{}, map[string]int{}
	for _, e := range list {
		if first, ok := keys[e.Key]; ok && e.Key != "" {
			r.mistake(e.line, "%s: key stands on line %d already", e.Key, first)
			continue
		}
		keys[e.Key] = e.line
		if first, ok := references[e.Reference()]; ok && e.Name != "" {
			r.mistake(e.line, "%s: %s stands on line %d already", e.label(), e.Reference(), first)
			continue
		}
		references[e.Reference()] = e.line
	}
}
