package needs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestARunLeavesOutWhatItHasNoTimeForAndNotesIt(t *testing.T) {
	marks := map[string]func(testing.TB){"slow": Slow, "most": Most, "main path": MainPath}
	for run, out := range map[string]string{"": "", runMost: "slow", runMainPaths: "slow most"} {
		noted := filepath.Join(t.TempDir(), "left-out")
		t.Setenv(runOf, run)
		t.Setenv(leftOutFile, noted)
		for name, mark := range marks {
			_ = os.Remove(noted)
			end := of(func(e testing.TB) { mark(named{e}) })
			text, _ := os.ReadFile(noted)
			if left := end.verb == "skip"; left != strings.Contains(out, name) || left != strings.Contains(string(text), ": TestOne\n") {
				t.Errorf("run %q, %s: %+v, and it is noted %q", run, name, end, text)
			}
		}
	}
}

// named is a test with a name.
type named struct{ testing.TB }

func (named) Name() string { return "TestOne" }

// A test of these packages that says nothing would take its time from a run that has none.
func TestEachTestWithAnEngineSaysWhichRunsItIsIn(t *testing.T) {
	found := 0
	for _, folder := range []string{"docker", "e2e"} {
		files, err := filepath.Glob(filepath.Join("..", folder, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range files {
			file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, declaration := range file.Decls {
				function, is := declaration.(*ast.FuncDecl)
				if !is || !strings.HasPrefix(function.Name.Name, "Test") || function.Name.Name == "TestMain" {
					continue
				}
				found++
				if !marked(function.Body) {
					t.Errorf("%s: %s has to begin with needs.MainPath(t), needs.Most(t) or needs.Slow(t)", name, function.Name.Name)
				}
			}
		}
	}
	if found == 0 {
		t.Error("there are no tests with an engine")
	}
}

// marked tells whether a function begins by saying which runs it is in.
func marked(body *ast.BlockStmt) bool {
	statement, is := body.List[0].(*ast.ExprStmt)
	if !is {
		return false
	}
	call, is := statement.X.(*ast.CallExpr)
	if !is {
		return false
	}
	selector, is := call.Fun.(*ast.SelectorExpr)
	if !is {
		return false
	}
	switch of, _ := selector.X.(*ast.Ident); selector.Sel.Name {
	case "MainPath", "Most", "Slow":
		return of != nil && of.Name == "needs"
	default:
		return false
	}
}
