package ci

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"tazlab.net/castle/ci/test/calls"
)

// wrong is the page that quotes what castle says and tells what to type.
const wrong = "docs/troubleshooting.md"

// quoted is code in Markdown.
var quoted = regexp.MustCompile("`([^`]+)`")

// Whoever looks a message up has it before them word for word.
func TestWhatTroubleshootingQuotesIsWhatCastleSays(t *testing.T) {
	said := literals(t)
	checked := 0
	for row := range tableRows(t) {
		for _, quote := range quoted.FindAllStringSubmatch(row[0], -1) {
			if !strings.Contains(quote[1], "…") {
				continue
			}
			for part := range strings.SplitSeq(quote[1], "…") {
				part = strings.Trim(part, " ,:()")
				if len(part) < 4 || strings.HasPrefix(part, "cluster.yaml:") {
					continue
				}
				checked++
				if !strings.Contains(said, part) {
					t.Errorf("%s quotes %q, and no text of castle's has %q", wrong, quote[1], part)
				}
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d parts of messages were found in %s", checked, wrong)
	}
}

// flag is one as it is typed.
var flag = regexp.MustCompile(`--([a-z-]+)`)

// A row also names flags alone, to be added to the call that failed.
func TestFlagsThatTroubleshootingSaysToTypeAreThere(t *testing.T) {
	module, err := calls.Read("../.dagger")
	if err != nil {
		t.Fatal(err)
	}
	flags := module.Flags()
	checked := 0
	for row := range tableRows(t) {
		for _, quote := range quoted.FindAllStringSubmatch(row[len(row)-1], -1) {
			words := strings.Fields(quote[1])
			if words[0] == "talosctl" || words[0] == "kubectl" || words[0] == "dagger" { // whole calls are the test of ci/test/calls
				continue
			}
			for _, found := range flag.FindAllStringSubmatch(quote[1], -1) {
				checked++
				if !flags[found[1]] {
					t.Errorf("%s says to type %q: no call has --%s", wrong, quote[1], found[1])
				}
			}
		}
	}
	if checked < 5 {
		t.Errorf("only %d flags were found in %s", checked, wrong)
	}
}

// tableRows are the rows of the tables on that page, each as its cells.
func tableRows(t *testing.T) func(func([]string) bool) {
	t.Helper()
	text, err := os.ReadFile("../" + wrong)
	if err != nil {
		t.Fatal(err)
	}
	return func(yield func([]string) bool) {
		for line := range strings.Lines(string(text)) {
			line = strings.TrimSpace(line)
			if strings.HasPrefix(line, "| ") && !yield(strings.Split(strings.Trim(line, "| "), " | ")) {
				return
			}
		}
	}
}

// literals are all texts in the program's code.
func literals(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(node ast.Node) bool {
			if literal, is := node.(*ast.BasicLit); is && literal.Kind == token.STRING {
				text, _ := strconv.Unquote(literal.Value)
				all.WriteString(text + "\n")
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}
