package manifest

import (
	"bytes"
	"sort"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// text is the source with an index of its lines, once as the YAML parser counts them and once as an editor does.
type text struct {
	src       []byte
	yamlLines []int // offset at which each line begins
	lines     []int
	// columns has, for each line of the parser that was asked about, the offset of every columnStep-th column: a
	// manifest of megabytes may be one line.
	columns map[int][]int
}

// columnStep is the number of columns between two entries of text.columns.
const columnStep = 1024

func newText(src []byte) *text {
	t := &text{src: src, lines: []int{0}, columns: map[int][]int{}}
	start := 0
	if bytes.HasPrefix(src, []byte("\uFEFF")) {
		start = len("\uFEFF") // the parser's columns begin after a byte order mark
	}
	t.yamlLines = []int{start}
	for i := start; i < len(src); {
		n := breakAt(src, i)
		if n == 0 {
			i++
			continue
		}
		i += n
		t.yamlLines = append(t.yamlLines, i)
		if src[i-1] == '\n' {
			t.lines = append(t.lines, i)
		}
	}
	return t
}

// breakAt returns the length of the line break at offset i, 0 where there is none. The parser keeps the breaks of YAML
// 1.1: beside LF, CR and CRLF also NEL (U+0085), LS (U+2028) and PS (U+2029).
func breakAt(src []byte, i int) int {
	switch rest := src[i:]; {
	case len(rest) == 0:
		return 0
	case rest[0] == '\n':
		return 1
	case rest[0] == '\r':
		if len(rest) > 1 && rest[1] == '\n' {
			return 2
		}
		return 1
	case bytes.HasPrefix(rest, []byte("\u0085")):
		return 2
	case bytes.HasPrefix(rest, []byte("\u2028")), bytes.HasPrefix(rest, []byte("\u2029")):
		return 3
	}
	return 0
}

// lineEnd is the offset of the first line break at or after i, or the end of the text.
func (t *text) lineEnd(i int) int {
	for i < len(t.src) && breakAt(t.src, i) == 0 {
		i++
	}
	return i
}

// line is the number of the line that holds the offset, from 1, as an editor counts.
func (t *text) line(offset int) int {
	return sort.SearchInts(t.lines, offset+1)
}

// lineRange is the line that holds the offset, without its line feed.
func (t *text) lineRange(offset int) (start, end int) {
	start = t.lines[t.line(offset)-1]
	if n := bytes.IndexByte(t.src[offset:], '\n'); n >= 0 {
		return start, offset + n
	}
	return start, len(t.src)
}

// offset converts a line and column of the parser, both from 1, the column in runes, to a byte offset.
func (t *text) offset(line, column int) int {
	if line < 1 || line > len(t.yamlLines) {
		return len(t.src)
	}
	marks := t.columns[line]
	if marks == nil {
		marks = []int{t.yamlLines[line-1]}
	}
	step := max(0, column-1) / columnStep
	for len(marks) <= step {
		marks = append(marks, t.runesOn(marks[len(marks)-1], columnStep))
	}
	t.columns[line] = marks
	return t.runesOn(marks[step], max(0, column-1)%columnStep)
}

// runesOn is the offset n runes after offset i, or the end of the text.
func (t *text) runesOn(i, n int) int {
	for ; n > 0 && i < len(t.src); n-- {
		_, size := utf8.DecodeRune(t.src[i:])
		i += size
	}
	return i
}

// nodeOffset is where a node's own text begins, its anchor and tag passed over.
func (t *text) nodeOffset(n *yaml.Node) int {
	i := t.offset(n.Line, n.Column)
	for i < len(t.src) {
		c := t.src[i]
		switch {
		case c == ' ' || c == '\t':
			i++
		case breakAt(t.src, i) > 0:
			i += breakAt(t.src, i)
		case c == '#':
			i = t.lineEnd(i)
		case c == '&' || c == '!':
			for i < len(t.src) && t.src[i] != ' ' && t.src[i] != '\t' && breakAt(t.src, i) == 0 {
				i++
			}
		default:
			return i
		}
	}
	return i
}

// span is the text of a scalar, without quotes and without a block scalar's header.
type span struct {
	start, end int
	quote      int // length of the quotation mark on either side, 0 or 1
}

// scalarSpan finds the text of a scalar that is spelled exactly as its value, on one line. It reports false for every
// other spelling: escapes, several lines, nothing at all.
func (t *text) scalarSpan(n *yaml.Node) (span, bool) {
	start := t.nodeOffset(n)
	value := n.Value
	switch n.Style &^ (yaml.TaggedStyle | yaml.FlowStyle) {
	case 0:
		s := span{start: start, end: start + len(value)}
		return s, value != "" && t.at(start, value)
	case yaml.SingleQuotedStyle:
		return t.quotedSpan(start, "'", value)
	case yaml.DoubleQuotedStyle:
		return t.quotedSpan(start, `"`, value)
	case yaml.LiteralStyle, yaml.FoldedStyle:
		return t.blockSpan(start, value)
	}
	return span{}, false
}

func (t *text) quotedSpan(start int, quote, value string) (span, bool) {
	s := span{start: start + 1, end: start + 1 + len(value), quote: 1}
	return s, t.at(start, quote+value+quote)
}

// blockSpan finds the one line of a block scalar that has a single line; start is at its | or >.
func (t *text) blockSpan(start int, value string) (span, bool) {
	for len(value) > 0 && value[len(value)-1] == '\n' {
		value = value[:len(value)-1]
	}
	if value == "" || !t.at(start, "|") && !t.at(start, ">") {
		return span{}, false
	}
	i := t.lineEnd(start)
	for i < len(t.src) && (t.src[i] == ' ' || breakAt(t.src, i) > 0) {
		i += max(1, breakAt(t.src, i))
	}
	s := span{start: i, end: i + len(value)}
	return s, t.at(i, value) && t.lineEnd(i) == s.end
}

func (t *text) at(i int, s string) bool {
	return i <= len(t.src) && bytes.HasPrefix(t.src[i:], []byte(s))
}

// breakNear is the line break at offset i, else, at the end of the text, that of the line before, else a line feed.
func (t *text) breakNear(i int) string {
	if breakAt(t.src, i) == 0 && len(t.yamlLines) > 1 {
		i = t.lineEnd(t.yamlLines[len(t.yamlLines)-2])
	}
	if n := breakAt(t.src, i); n > 0 {
		return string(t.src[i : i+n])
	}
	return "\n"
}
