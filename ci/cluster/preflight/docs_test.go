package preflight

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/golden"
	"tazlab.net/castle/ci/test/drill/marked"
)

// With -update, the page is written anew.
func TestThePageShowsTheTableOfRows(t *testing.T) {
	const page = "../../../docs/create.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	var shown strings.Builder
	shown.WriteString("| group | row | looked at | fails `create` |\n|---|---|---|---|\n")
	group := ""
	for _, check := range table {
		if check.looksAt == "" {
			t.Errorf("the row %s %s does not say what it looks at", check.group, check.name)
		}
		fails := "no"
		switch {
		case check.blocking:
			fails = "yes"
		case check.group == groupSecrets:
			fails = "`create` says so itself"
		}
		if name := check.group; name != group {
			group = name
			fmt.Fprintf(&shown, "| %s ", name)
		} else {
			shown.WriteString("| ")
		}
		fmt.Fprintf(&shown, "| %s | %s | %s |\n", check.name, check.looksAt, fails)
	}
	want, err := marked.Replace(string(text), "doctor", shown.String())
	if err != nil {
		t.Fatal(err)
	}
	golden.Match(t, page, want)
}
