package manifest

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// manifest is a parsed YAML stream with the image references found in it.
type manifest struct {
	text      *text
	documents []*yaml.Node
	targets   []*target // in the order of the text
}

func parse(src []byte) (*manifest, error) {
	documents, err := parseDocuments(src)
	if err != nil {
		return nil, err
	}
	m := &manifest{text: newText(src), documents: documents}
	for i, d := range documents {
		m.targets = append(m.targets, findTargets(m.text, d, i+1)...)
	}
	slices.SortStableFunc(m.targets, func(a, b *target) int { return cmp.Compare(a.offset, b.offset) })
	return m, nil
}

// parseDocuments returns the document nodes of the stream, after refusing what a Kubernetes client would refuse too:
// duplicate keys and aliases of another document's anchors.
func parseDocuments(src []byte) ([]*yaml.Node, error) {
	if bytes.HasPrefix(src, []byte("\xff\xfe")) || bytes.HasPrefix(src, []byte("\xfe\xff")) {
		return nil, &SyntaxError{Line: 1, Problem: "the file is UTF-16; save it as UTF-8"}
	}
	var documents []*yaml.Node
	lines := &lineReader{rest: src}
	decoder := yaml.NewDecoder(lines)
	for {
		var d yaml.Node
		err := decoder.Decode(&d)
		if errors.Is(err, io.EOF) {
			return documents, nil
		}
		if err != nil {
			return nil, syntaxError(src, err, lines.read)
		}
		if err := checkDocument(&d); err != nil {
			return nil, err
		}
		documents = append(documents, &d)
	}
}

// lineReader hands out one line at a time, so that the number of lines read tells how far the parser came.
type lineReader struct {
	rest []byte
	read int
}

func (r *lineReader) Read(p []byte) (int, error) {
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n := bytes.IndexByte(r.rest, '\n') + 1
	if n == 0 {
		n = len(r.rest)
	}
	if n <= len(p) {
		r.read++
	}
	n = copy(p, r.rest[:n])
	r.rest = r.rest[n:]
	return n, nil
}

// syntaxError makes the most of the line in the parser's text. For a structure that does not end as it should, that line
// is one too low and where the structure begins; the problem is between there and the last line read. The parser names no
// line for a problem in the first line and for bytes that are no characters of YAML.
func syntaxError(src []byte, err error, read int) error {
	problem := strings.TrimPrefix(err.Error(), "yaml: ")
	line := 0
	if rest, ok := strings.CutPrefix(problem, "line "); ok {
		number, text, _ := strings.Cut(rest, ": ")
		if n, err := strconv.Atoi(number); err == nil {
			line, problem = n, text
		}
	}
	switch {
	case strings.HasPrefix(problem, "found incompatible YAML document"):
		return directiveError(src, problem)
	case strings.HasPrefix(problem, "did not find expected"):
		return &SyntaxError{Line: min(line+1, read), LastLine: read, Problem: problem}
	case strings.HasPrefix(problem, "unknown anchor"):
		return &SyntaxError{Line: line, Problem: problem}
	case line == 0:
		line = 1 + bytes.Count(src[:firstBadByte(src)], []byte("\n"))
	}
	return &SyntaxError{Line: line, Problem: problem}
}

// directiveError names the %YAML line that asks for another version of YAML than Kubernetes' parsers read.
func directiveError(src []byte, problem string) error {
	number := 0
	for line := range bytes.Lines(src) {
		number++
		version, is := bytes.CutPrefix(line, []byte("%YAML"))
		if is && string(bytes.TrimSpace(version)) != "1.1" {
			return &SyntaxError{Line: number, Problem: fmt.Sprintf("the directive %s asks for a version of YAML that "+
				"kustomize and Flux do not read; remove the line", bytes.TrimSpace(line))}
		}
	}
	return &SyntaxError{Line: 1, Problem: problem}
}

// firstBadByte is the offset of the first byte that is no UTF-8 or a control character, 0 where there is none.
func firstBadByte(src []byte) int {
	for i := 0; i < len(src); {
		r, size := utf8.DecodeRune(src[i:])
		control := r < ' ' && r != '\t' && r != '\n' && r != '\r' || r >= 0x7f && r < 0xa0 && r != 0x85
		if r == utf8.RuneError && size == 1 || control {
			return i
		}
		i += size
	}
	return 0
}

func checkDocument(document *yaml.Node) error {
	own := map[*yaml.Node]bool{}
	var check func(n *yaml.Node) error
	check = func(n *yaml.Node) error {
		own[n] = true
		if n.Kind == yaml.AliasNode && !own[n.Alias] {
			return &SyntaxError{Line: n.Line, Problem: fmt.Sprintf("alias *%s has its anchor in another document", n.Value)}
		}
		if n.Kind == yaml.MappingNode {
			if err := checkKeys(n); err != nil {
				return err
			}
		}
		for _, child := range n.Content {
			if err := check(child); err != nil {
				return err
			}
		}
		return nil
	}
	return check(document)
}

func checkKeys(mapping *yaml.Node) error {
	lines := make(map[string]int, len(mapping.Content)/2)
	for i := 0; i < len(mapping.Content); i += 2 {
		key := resolve(mapping.Content[i])
		if key.Kind != yaml.ScalarNode {
			continue
		}
		if first, ok := lines[key.Value]; ok {
			return &SyntaxError{Line: mapping.Content[i].Line,
				Problem: fmt.Sprintf("key %q is already defined at line %d", key.Value, first)}
		}
		lines[key.Value] = mapping.Content[i].Line
	}
	return nil
}
