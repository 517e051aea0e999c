// Package renderingtest compares results with golden files in all the formats that they are written in.
package renderingtest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/rendering"
)

var update = flag.Bool("update", false, "write the golden files of testdata anew")

// MustRead compares all formats of a result with the golden files testdata/NAME.txt, .json and .md.
func MustRead(t *testing.T, name string, result rendering.Result) {
	t.Helper()
	for format, extension := range map[string]string{"text": ".txt", "json": ".json", "markdown": ".md"} {
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
			file := filepath.Join("testdata", name+extension)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("%s differs; look at it, and run with -update if it shall be so. Got\n%s", file, got)
			}
		})
	}
}
