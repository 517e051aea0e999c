// Package strictyamltest holds what is true of every refused document.
package strictyamltest

import (
	"errors"
	"strings"
	"testing"
	"unicode"

	"tazlab.net/castle/ci/base/strictyaml"
)

// Check fails the test unless an error is a list of mistakes, each of them one line of text that a terminal can show and that is about a line of the
// document, or about none.
func Check(t testing.TB, err error, document []byte) {
	t.Helper()
	var mistakes strictyaml.Mistakes
	if !errors.As(err, &mistakes) || len(mistakes) == 0 {
		t.Fatalf("it is refused without a mistake: %v", err)
	}
	lines := strictyaml.Lines(document)
	for _, mistake := range mistakes {
		if mistake.Line < 0 || mistake.Line > lines {
			t.Errorf("of %d lines, line %d %s", lines, mistake.Line, mistake.Text)
		}
		if mistake.Text == "" || strings.ContainsFunc(mistake.Text, unicode.IsControl) {
			t.Errorf("a mistake is no line of text: %q", mistake.Text)
		}
	}
}
