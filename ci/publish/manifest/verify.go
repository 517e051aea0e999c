package manifest

import (
	"fmt"

	"go.yaml.in/yaml/v3"
)

// verify parses the edited text and compares it with the tree the edits were made in.
func (b *bump) verify(out []byte) error {
	documents, err := parseDocuments(out)
	if err != nil {
		return &InternalError{Location: b.target.Location, Problem: "the edited text does not parse: " + err.Error()}
	}
	if len(documents) != len(b.documents) {
		return &InternalError{Location: b.target.Location,
			Problem: fmt.Sprintf("%d documents became %d", len(b.documents), len(documents))}
	}
	for i, d := range documents {
		if n := difference(b.documents[i], d); n != nil {
			return &InternalError{Location: b.target.Location,
				Problem: fmt.Sprintf("line %d of the edited text differs from what was asked for", n.Line)}
		}
	}
	return nil
}

// difference returns the first node of got that is not as in want, nil if the trees are equal but for positions and
// comments. Comments need no look: no edit touches one, and the parser hands them to another node when a line is added.
func difference(want, got *yaml.Node) *yaml.Node {
	if want.Kind != got.Kind || want.Value != got.Value || want.Tag != got.Tag || want.Style != got.Style ||
		want.Anchor != got.Anchor || len(want.Content) != len(got.Content) {
		return got
	}
	for i := range want.Content {
		if d := difference(want.Content[i], got.Content[i]); d != nil {
			return d
		}
	}
	return nil
}
