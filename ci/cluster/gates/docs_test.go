package gates

import (
	"os"
	"slices"
	"strings"
	"testing"
)

func TestThePageShowsEachGate(t *testing.T) {
	page, err := os.ReadFile("../../../docs/create.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, found := strings.Cut(string(page), "| gate | condition | holds when |\n|---|---|---|\n")
	table, _, ended := strings.Cut(table, "\n\n")
	if !found || !ended {
		t.Fatal("docs/create.md has no table of gates")
	}
	var names []string
	for line := range strings.Lines(table) {
		if name := strings.TrimSpace(strings.Split(line, "|")[1]); name != "" {
			names = append(names, name)
		}
	}
	if want := Names(); !slices.Equal(names, want) {
		t.Errorf("docs/create.md shows the gates %v, and there are %v", names, want)
	}
}
