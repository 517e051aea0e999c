// Package strictyaml reads files that people write: every mistake is named at once, with its line and its fix, and nothing
// is taken for what it is not.
package strictyaml

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/url"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// found is a mistake before its place is written out: the label of a node is known only once everything has been read.
type found struct {
	line int
	path string
	text string
}

// Text reads a value that is written as text: it returns the value, or what is wrong with it.
type Text struct {
	Read func(text string) (value any, problem string)
	What string // what must stand there, such as "one address such as 192.168.1.10"
}

// Schema is what a document's Go types do not say.
type Schema struct {
	Facts Facts
	// Texts are the types that are written as text though they are none.
	Texts map[reflect.Type]Text
	// Wholes are the types that take what stands there as a whole.
	Wholes map[reflect.Type]Whole
}

// Whole reads whatever stands at a place: it returns the value, or what is wrong with it.
type Whole func(node *yaml.Node) (value any, problem string)

// Reader turns YAML nodes into Go values, whose fields are named by their json tags, remembers the line of every field, and
// keeps each mistake instead of stopping at the first. Values are structs, slices, maps by text, integers, truth values and
// texts, and what Schema.Texts names.
type Reader struct {
	Schema
	file     string
	last     int             // the document's last line
	lines    map[string]int  // path → line of fields that are there
	broken   map[string]bool // paths whose value could not be read
	mistakes []found
}

// Decode reads a document of one mapping into target, a pointer to a struct. What cannot be read of it the reader knows as
// mistakes; an error, of type Mistakes, says that it is no YAML, empty, or not alone in its file. What says what the file
// holds, such as "describes one cluster", and start where an empty one comes from.
func Decode(file string, data []byte, target any, schema Schema, what, start string) (*Reader, error) {
	r := &Reader{Schema: schema, file: file, last: Lines(data), lines: map[string]int{}, broken: map[string]bool{}}
	var document, next yaml.Node
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	if err := decoder.Decode(&document); err != nil && !errors.Is(err, io.EOF) {
		return nil, r.syntax(err)
	}
	if len(document.Content) == 0 {
		return nil, Mistakes{{File: file, Text: "is empty; " + start}}
	}
	switch err := decoder.Decode(&next); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return nil, r.syntax(err)
	default:
		return nil, Mistakes{{File: file, Line: next.Line, Text: "a second document starts here; a file " + what}}
	}
	root := document.Content[0]
	r.lines[""] = root.Line
	r.value(reflect.ValueOf(target).Elem(), root, "")
	return r, nil
}

var syntaxError = regexp.MustCompile(`^yaml: (?:line (\d+): )?(.*)$`)

// syntax makes a mistake of what the YAML parser says: "yaml: line 3: mapping values are not allowed in this context". At the end of a
// document it may name the line behind the last, as it may for a value that is not there.
func (r *Reader) syntax(err error) Mistakes {
	m := Mistake{File: r.file, Text: "is not YAML: " + err.Error()}
	if match := syntaxError.FindStringSubmatch(err.Error()); match != nil {
		m.Text = "is not YAML: " + match[2] + "; look here and on the line before"
		if line, err := strconv.Atoi(match[1]); err == nil {
			m.Line = min(line, r.last)
		}
	}
	return Mistakes{m}
}

// lineBreak ends a line in YAML 1.1, section 5.4.
var lineBreak = regexp.MustCompile("\r\n|[\n\r\u0085\u2028\u2029]")

// Lines counts the lines of a document as YAML does, which may be more than an editor shows.
func Lines(document []byte) int {
	breaks := lineBreak.FindAllIndex(document, -1)
	if n := len(breaks); n > 0 && breaks[n-1][1] == len(document) {
		return n
	}
	return len(breaks) + 1
}

// Mistakes are those that were found, each with its place in front as name writes it: "network.gateway: …". None is nil.
func (r *Reader) Mistakes(name func(path string) string) Mistakes {
	var list Mistakes
	for _, m := range r.mistakes {
		text := m.text
		if place := name(m.path); place != "" {
			text = printable(place) + " " + m.text
		}
		list = append(list, Mistake{r.file, m.line, text})
	}
	list.sort()
	return list
}

// Mistake records what is wrong with the field at path. The line is the field's, or that of the nearest field around it
// that is there.
func (r *Reader) Mistake(path, format string, args ...any) {
	r.at(r.line(path), path, format, args...)
}

// MistakeAt is Mistake for a line of its own, such as one within what is read as a whole.
func (r *Reader) MistakeAt(line int, path, format string, args ...any) {
	r.at(line, path, format, args...)
}

func (r *Reader) at(line int, path, format string, args ...any) {
	r.mistakes = append(r.mistakes, found{min(line, r.last), path, fmt.Sprintf(format, args...)})
}

func (r *Reader) line(path string) int {
	for path != "" {
		if line, ok := r.lines[path]; ok {
			return line
		}
		path = parent(path)
	}
	return r.lines[""]
}

// Has says whether the field at path stands in the file and could be read.
func (r *Reader) Has(path string) bool {
	_, there := r.lines[path]
	return there && !r.broken[path]
}

// Broken says whether the field at path is there but could not be read, or is missing though it must not.
func (r *Reader) Broken(path string) bool { return r.broken[path] }

func parent(path string) string {
	return path[:max(strings.LastIndexByte(path, '.'), strings.LastIndexByte(path, '['), 0)]
}

// Join is the path of a field in the section at path.
func Join(path, field string) string {
	if path == "" {
		return field
	}
	return path + "." + field
}

// Entry is the path of a map's entry, "sites[blog]"; what means something in a path is written as in a URL.
func Entry(path, name string) string { return path + "[" + entryName.Replace(name) + "]" }

var entryName = strings.NewReplacer("%", "%25", "[", "%5B", "]", "%5D", ".", "%2E")

// EntryName is the name in an entry's path.
func EntryName(text string) string {
	name, err := url.PathUnescape(text)
	if err != nil {
		return text
	}
	return name
}

// printable writes what a terminal would not show as %q does: a place may have a name of the document's in it.
func printable(text string) string {
	quoted := strconv.Quote(text)
	return quoted[1 : len(quoted)-1]
}

// value reads one YAML node into a Go value, and notes what of it cannot be read.
func (r *Reader) value(target reflect.Value, node *yaml.Node, path string) {
	if node.Kind == yaml.AliasNode {
		node = node.Alias
	}
	fail := func(format string, args ...any) {
		r.broken[path] = true
		r.Mistake(path, format, args...)
	}
	if node.Tag == "!!null" {
		fail("is empty; give it a value or remove it")
		return
	}
	if text, is := r.Texts[target.Type()]; is {
		value, problem := text.Read(node.Value)
		if node.Kind != yaml.ScalarNode || problem != "" {
			fail("%s", cmp.Or(problem, "must be "+text.What))
			return
		}
		target.Set(reflect.ValueOf(value))
		return
	}
	if read, is := r.Wholes[target.Type()]; is {
		value, problem := read(node)
		if problem != "" {
			fail("%s", problem)
			return
		}
		target.Set(reflect.ValueOf(value))
		return
	}
	switch kind := target.Kind(); {
	case kind == reflect.Struct:
		word := r.Facts.Of(path).Instead
		if word != "" && node.Kind == yaml.ScalarNode && node.Value == word {
			return
		}
		if node.Kind != yaml.MappingNode && word != "" {
			fail("must be the word %s, or hold the fields %s", word, strings.Join(FieldNames(target.Type()), ", "))
			return
		}
		if node.Kind != yaml.MappingNode {
			fail("must hold the fields %s", strings.Join(FieldNames(target.Type()), ", "))
			return
		}
		r.mapping(target, node, path)
	case kind == reflect.Slice:
		if r.Facts.Of(path).Single && node.Kind == yaml.ScalarNode {
			target.Set(reflect.MakeSlice(target.Type(), 1, 1))
			r.value(target.Index(0), node, path)
			return
		}
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
	case kind == reflect.Map:
		if node.Kind != yaml.MappingNode {
			fail("must hold entries by name")
			return
		}
		r.entries(target, node, path)
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
		switch fact := r.Facts.Of(path); {
		case node.Kind != yaml.ScalarNode:
			fail("must be text")
			return
		case node.Tag != "!!str" && fact.What != "" && !fact.Form.MatchString(node.Value):
			fail("%q is not %s", node.Value, fact.What) // in quotes it would not be either
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

func (r *Reader) mapping(target reflect.Value, node *yaml.Node, path string) {
	fields := map[string]reflect.Value{}
	names := FieldNames(target.Type())
	for i, name := range names {
		fields[name] = target.Field(i)
	}
	first := map[string]int{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		field, known := fields[name.Value]
		if !known {
			r.at(name.Line, path, "unknown field %q; %s", name.Value, DidYouMean(name.Value, names, "known are "))
			continue
		}
		at := Join(path, name.Value)
		if line, twice := first[name.Value]; twice {
			r.at(name.Line, path, "field %q stands twice, first on line %d; remove one", name.Value, line)
			continue
		}
		first[name.Value] = name.Line
		r.lines[at] = name.Line
		r.value(field, value, at)
	}
	for _, name := range names {
		if at := Join(path, name); first[name] == 0 && !r.Facts.MayMiss(at) {
			r.missing(at, path, name, fields[name].Type())
		}
	}
}

func (r *Reader) missing(at, path, name string, kind reflect.Type) {
	r.broken[at] = true
	text := name + " is missing"
	if r.IsSection(kind) {
		text += "; it holds " + strings.Join(FieldNames(kind), ", ")
		if word := r.Facts.Of(at).Instead; word != "" {
			text += ", or is the word " + word
		}
	} else if hint := r.Facts.Of(at).Hint; hint != "" {
		text += "; " + hint
	}
	r.Mistake(path, "%s", text)
}

// entries reads a map; the path of an entry is "sites[blog]".
func (r *Reader) entries(target reflect.Value, node *yaml.Node, path string) {
	target.Set(reflect.MakeMap(target.Type()))
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		at := Entry(path, name.Value)
		if line, twice := r.lines[at]; twice {
			r.at(name.Line, path, "%q stands twice, first on line %d; remove one", name.Value, line)
			continue
		}
		r.lines[at] = name.Line
		entry := reflect.New(target.Type().Elem()).Elem()
		r.value(entry, value, at)
		target.SetMapIndex(reflect.ValueOf(name.Value), entry)
	}
}

// IsSection says whether a type holds fields of its own: a struct that is not written as text, and not read as a whole.
func (s Schema) IsSection(t reflect.Type) bool {
	_, text := s.Texts[t]
	_, whole := s.Wholes[t]
	return t.Kind() == reflect.Struct && !text && !whole
}

// FieldNames are those of a section, in its order.
func FieldNames(t reflect.Type) []string {
	names := make([]string, t.NumField())
	for i := range names {
		names[i], _, _ = strings.Cut(t.Field(i).Tag.Get("json"), ",")
	}
	return names
}
