package golden

import (
	"strings"
	"testing"
)

func TestADiffShowsWhatDiffersAndIsShort(t *testing.T) {
	if got := Diff("a.txt", "one\ntwo\nthree\n", "one\n2\nthree\n"); !strings.Contains(got, "\n one\n-two\n+2\n three\n") {
		t.Errorf("got\n%s", got)
	}
	if got := Diff("a.txt", strings.Repeat("x\n", 500), strings.Repeat("y\n", 500)); strings.Count(got, "\n") != shown+1 || !strings.HasSuffix(got, " lines more\n") {
		t.Errorf("got %d lines:\n%s", strings.Count(got, "\n"), got)
	}
}
