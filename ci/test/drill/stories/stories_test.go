package stories

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/golden"
	"tazlab.net/castle/ci/test/drill/marked"
)

// ci is the folder of all packages, seen from this one.
const ci = "../../.."

// declared are the tests of a package.
func declared(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(ci, folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			function, is := declaration.(*ast.FuncDecl)
			if is && function.Recv == nil && function.Name.Name != "TestMain" && (strings.HasPrefix(function.Name.Name, "Test") || strings.HasPrefix(function.Name.Name, "Fuzz")) {
				names = append(names, function.Name.Name)
			}
		}
	}
	return names
}

func TestEveryTestOfAStoryIsThere(t *testing.T) {
	names := map[string]bool{}
	for _, story := range All() {
		if names[story.Name] {
			t.Errorf("%s is told twice", story.Name)
		}
		names[story.Name] = true
		if story.Outcome == "" {
			t.Errorf("%s has no outcome", story.Name)
		}
		for _, test := range story.Tests {
			if !slices.Contains(declared(t, test.Package), test.Name) {
				t.Errorf("%s: ci/%s has no %s", story.Name, test.Package, test.Name)
			}
		}
	}
}

func TestEveryScenarioPlaysAStory(t *testing.T) {
	found := declared(t, scenarios)
	if len(found) < 20 {
		t.Fatalf("only %d scenarios were found", len(found))
	}
	for _, name := range found {
		plays := func(story Story) bool { return slices.Contains(story.Tests, Test{scenarios, name}) }
		// On real nodes, make drill-talos plays what it needs another hour for to build.
		if !slices.ContainsFunc(All(), plays) && !strings.Contains(name, "OnRealNodes") {
			t.Errorf("%s plays no story: give it a row in clusters.go", name)
		}
	}
}

// With -update, the page is written anew.
func TestThePageShowsTheTable(t *testing.T) {
	page := filepath.Join(ci, "..", "docs", "architecture.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want, err := marked.Replace(string(text), "stories", Markdown(All()))
	if err != nil {
		t.Fatal(err)
	}
	golden.Match(t, page, want)
}
