package description

import (
	"fmt"
	"net/netip"
	"reflect"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// found is a mistake before its place is written out: the label of a node is known only once everything has been read.
type found struct {
	line int
	path string
	text string
}

// reader turns YAML nodes into the description's types, remembers the line of every field, and keeps each mistake
// instead of stopping at the first.
type reader struct {
	file     string
	lines    map[string]int  // path → line of fields that are there
	broken   map[string]bool // paths whose value could not be read
	mistakes []found
}

func newReader(file string) *reader {
	return &reader{file: file, lines: map[string]int{}, broken: map[string]bool{}}
}

// mistake records what is wrong with the field at path. The line is the field's, or that of the nearest field around it
// that is there.
func (r *reader) mistake(path, format string, args ...any) {
	r.at(r.line(path), path, format, args...)
}

func (r *reader) at(line int, path, format string, args ...any) {
	r.mistakes = append(r.mistakes, found{line, path, fmt.Sprintf(format, args...)})
}

func (r *reader) line(path string) int {
	for path != "" {
		if line, ok := r.lines[path]; ok {
			return line
		}
		path = parent(path)
	}
	return r.lines[""]
}

// has says whether the field at path stands in the file and could be read.
func (r *reader) has(path string) bool {
	_, there := r.lines[path]
	return there && !r.broken[path]
}

func parent(path string) string {
	return path[:max(strings.LastIndexByte(path, '.'), strings.LastIndexByte(path, '['), 0)]
}

func join(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}

// all gives the mistakes with their places written out: "nodes[2] blue-cp-3: address …", "network.gateway: …".
func (r *reader) all(c *Cluster) Mistakes {
	var list Mistakes
	for _, m := range r.mistakes {
		text := m.text
		if label, field := nodePlace(c, m.path); label != "" {
			text = label + ":" + prefixed(" ", field) + " " + m.text
		} else if m.path != "" {
			text = m.path + ": " + m.text
		}
		list = append(list, Mistake{r.file, m.line, text})
	}
	list.sort()
	return list
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

var inNode = regexp.MustCompile(`^nodes\[(\d+)\]\.?(.*)$`)

func nodePlace(c *Cluster, path string) (label, field string) {
	match := inNode.FindStringSubmatch(path)
	if match == nil {
		return "", ""
	}
	var i int
	if _, err := fmt.Sscan(match[1], &i); err != nil || i >= len(c.Nodes) {
		return "", ""
	}
	return nodeLabel(i, c.Nodes[i]), match[2]
}

func nodeLabel(i int, n Node) string {
	return fmt.Sprintf("nodes[%d]", i) + prefixed(" ", n.Name)
}

func (r *reader) read(c *Cluster, root *yaml.Node) {
	r.lines[""] = root.Line
	r.value(reflect.ValueOf(c).Elem(), root, "")
}

var (
	addressType = reflect.TypeFor[netip.Addr]()
	prefixType  = reflect.TypeFor[netip.Prefix]()
)

// value reads one YAML node into a Go value, and notes what of it cannot be read.
func (r *reader) value(target reflect.Value, node *yaml.Node, path string) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	fail := func(format string, args ...any) {
		r.broken[path] = true
		r.mistake(path, format, args...)
	}
	if node.Tag == "!!null" {
		fail("is empty; give it a value or remove it")
		return
	}
	switch kind := target.Kind(); {
	case target.Type() == addressType:
		address, problem := readAddress(node.Value)
		if node.Kind != yaml.ScalarNode || problem != "" {
			fail("%s", orText(problem, "must be one address such as 192.168.1.10"))
			return
		}
		target.Set(reflect.ValueOf(address))
	case target.Type() == prefixType:
		prefix, problem := readPrefix(node.Value)
		if node.Kind != yaml.ScalarNode || problem != "" {
			fail("%s", orText(problem, "must be one subnet such as 192.168.1.0/24"))
			return
		}
		target.Set(reflect.ValueOf(prefix))
	case kind == reflect.Struct:
		if node.Kind != yaml.MappingNode {
			fail("must hold the fields %s", strings.Join(fieldNames(target.Type()), ", "))
			return
		}
		r.mapping(target, node, path)
	case kind == reflect.Slice:
		if node.Kind != yaml.SequenceNode {
			fail("must be a list")
			return
		}
		target.Set(reflect.MakeSlice(target.Type(), len(node.Content), len(node.Content)))
		for i, item := range node.Content {
			at := fmt.Sprintf("%s[%d]", path, i)
			r.lines[at] = item.Line
			r.value(target.Index(i), item, at)
			if r.broken[at] {
				r.broken[path] = true
			}
		}
	case kind == reflect.Int:
		var number int
		if node.Kind != yaml.ScalarNode || node.Tag != "!!int" || node.Decode(&number) != nil {
			fail("%q is not a whole number", node.Value)
			return
		}
		target.SetInt(int64(number))
	case kind == reflect.Bool:
		var yes bool
		if node.Kind != yaml.ScalarNode || node.Tag != "!!bool" || node.Decode(&yes) != nil {
			fail("%q is neither true nor false", node.Value)
			return
		}
		target.SetBool(yes)
	case kind == reflect.String:
		switch {
		case node.Kind != yaml.ScalarNode:
			fail("must be text")
			return
		case node.Tag != "!!str":
			fail("must be text; put it in quotes: %q", node.Value)
			return
		}
		target.SetString(node.Value)
	default:
		fail("cannot be read as %s", target.Type())
	}
}

func orText(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}

func (r *reader) mapping(target reflect.Value, node *yaml.Node, path string) {
	fields := map[string]reflect.Value{}
	names := fieldNames(target.Type())
	for i, name := range names {
		fields[name] = target.Field(i)
	}
	first := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		field, known := fields[name.Value]
		if !known {
			r.at(name.Line, path, "unknown field %q; %s", name.Value, didYouMean(name.Value, names, "known are "))
			continue
		}
		at := join(path, name.Value)
		if line, twice := first[name.Value]; twice {
			r.at(name.Line, path, "field %q stands twice, first on line %d; remove one", name.Value, line)
			continue
		}
		first[name.Value] = name.Line
		r.lines[at] = name.Line
		r.value(field, value, at)
	}
	for _, name := range names {
		if at := join(path, name); first[name] == 0 && !mayMiss(at) {
			r.missing(at, path, name, fields[name].Type())
		}
	}
}

func (r *reader) missing(at, path, name string, kind reflect.Type) {
	r.broken[at] = true
	text := name + " is missing"
	if isSection(kind) {
		text += "; it holds " + strings.Join(fieldNames(kind), ", ")
	} else if hint := factOf(at).hint; hint != "" {
		text += "; " + hint
	}
	r.mistake(path, "%s", text)
}

// isSection says whether a type holds fields of a description. Addresses are structs too, but written as text.
func isSection(t reflect.Type) bool {
	return t.Kind() == reflect.Struct && t != addressType && t != prefixType
}

// fieldNames are those of a section, in its order.
func fieldNames(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	return names
}
