package strictyaml

import (
	"fmt"
	"slices"
	"strings"
)

// Mistake is one thing that is wrong with a document, and its fix.
type Mistake struct {
	File string // as Decode was told
	Line int    // counted from 1; 0 where the mistake has no line
	Text string // one sentence without the place
}

func (m Mistake) String() string {
	if m.Line == 0 {
		return m.File + ": " + m.Text
	}
	return fmt.Sprintf("%s:%d: %s", m.File, m.Line, m.Text)
}

// Mistakes is everything that is wrong with a document, by line. It is an error.
type Mistakes []Mistake

// Error has one line for each mistake: "cluster.yaml:12: nodes[0] blue-cp-1: address …".
func (m Mistakes) Error() string {
	lines := make([]string, len(m))
	for i, mistake := range m {
		lines[i] = mistake.String()
	}
	return strings.Join(lines, "\n")
}

func (m Mistakes) sort() {
	slices.SortStableFunc(m, func(a, b Mistake) int { return a.Line - b.Line })
}
