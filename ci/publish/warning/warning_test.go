package warning

import (
	"fmt"
	"slices"
	"testing"
)

func TestWhatRepeatsIsOneLineWithACountTwoExamplesAndTheCallThatListsAll(t *testing.T) {
	warnings := []Warning{{Text: "first"}}
	for i := range 53 {
		warnings = append(warnings, Warning{Text: fmt.Sprintf("tags: %d", i), Kind: "terms of tags are alike", Example: fmt.Sprint(i)})
	}
	warnings = append(warnings, Warning{Text: "one", Kind: "of a pair"}, Warning{Text: "other", Kind: "of a pair"}, Warning{Text: "last"})
	want := []string{"first", "53 terms of tags are alike. Examples: 0; 1. All: list them", "one", "other", "last"}
	if got := Lines(warnings, "list them"); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if got := Texts(warnings); len(got) != 57 || got[1] != "tags: 0" {
		t.Errorf("%q", got)
	}
}
