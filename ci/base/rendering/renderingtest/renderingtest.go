// Package renderingtest compares results with golden files in all the formats that they are written in.
package renderingtest

import (
	"path/filepath"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/golden"
	"tazlab.net/castle/ci/base/rendering"
)

// MustRead compares all formats of a result with the golden files testdata/NAME.txt, .json and .md.
func MustRead(t *testing.T, name string, result rendering.Result) {
	t.Helper()
	mustRead(t, name, result, "text", "json", "markdown")
}

// MustReadText compares what a person reads of a result with the golden file testdata/NAME.txt. A few results of a kind show how all are
// written as JSON and Markdown.
func MustReadText(t *testing.T, name string, result rendering.Result) {
	t.Helper()
	mustRead(t, name, result, "text")
}

func mustRead(t *testing.T, name string, result rendering.Result, formats ...string) {
	t.Helper()
	extensions := map[string]string{"text": ".txt", "json": ".json", "markdown": ".md"}
	for _, format := range formats {
		extension := extensions[format]
		t.Run(name+" as "+format, func(t *testing.T) {
			got, err := rendering.As(format, result)
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range strings.Split(got, "\n") {
				if strings.TrimRight(line, " \t") != line {
					t.Errorf("line %d ends in a space: %q", i+1, line)
				}
			}
			golden.Match(t, filepath.Join("testdata", name+extension), got)
		})
	}
}
