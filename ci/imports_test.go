// Package ci has no code. Its tests hold the layout that CONTRIBUTING.md describes, and what calls take along.
package ci

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "tazlab.net/castle/ci/"

// template is the one package of ours beside ci: Go embeds only what is below a package's own folder, and the template is to be
// found by those who read it. Here it is called as seen from ci.
const template = "../gitops-template"

// rooms are the folders of ci, each with the rooms that its packages may import beside themselves and base. Tests may
// import everything.
var rooms = map[string][]string{
	"base":    nil,
	"publish": nil,
	"cluster": nil,
	"gitops":  {"cluster", ".."}, // of a cluster its description alone, see below; and the template
	"release": {"publish"},       // it pushes and signs an image as a publish does
	"setup":   nil,
	"sandbox": {"cluster"},          // it plays what a description says
	"demo":    {"setup", "publish"}, // it starts an engine and reads publish's report
	"bench":   {"publish", "cluster", "sandbox", "test"},
	"test":    {"publish", "cluster", "setup", "bench"},
	"cmd":     {"publish", "cluster", "gitops", "release", "setup", "sandbox", "demo"},
}

// verbs are what a person asks for. They share what stands beside them, and know nothing of each other.
var verbs = []string{
	"cluster/create", "cluster/doctor", "cluster/destroy", "cluster/wipe", "cluster/removenode", "cluster/plan", "cluster/status", "cluster/states", "cluster/secretadmin", "cluster/newcluster", "cluster/credentials", "cluster/forget",
	"publish/rollback", "publish/history", "publish/verify",
}

func TestARoomImportsOnlyWhatItsRuleAllows(t *testing.T) {
	for of, imports := range packages(t) {
		own := room(of)
		allowed, known := rooms[own]
		if !known {
			t.Errorf("%s is in no room: put it into one of %v", of, slices.Sorted(maps.Keys(rooms)))
			continue
		}
		for _, imported := range imports {
			if other := room(imported); other != own && other != "base" && !slices.Contains(allowed, other) {
				t.Errorf("%s imports %s: %s may import %v beside itself and base", of, imported, own, allowed)
			}
		}
	}
}

func TestAVerbImportsNoOther(t *testing.T) {
	for of, imports := range packages(t) {
		if !slices.Contains(verbs, of) {
			continue
		}
		for _, imported := range imports {
			if slices.Contains(verbs, imported) {
				t.Errorf("%s imports %s: put what both need beside them", of, imported)
			}
		}
	}
}

// What is made for a cluster is made of its description: nothing of it calls a cluster. And what makes it is a program of its own.
func TestGitOpsKnowsOfAClusterOnlyItsConfiguration(t *testing.T) {
	for of, imports := range packages(t) {
		for _, imported := range imports {
			if room(of) == "gitops" && room(imported) == "cluster" && imported != "cluster/config" {
				t.Errorf("%s imports %s: it may import cluster/config alone", of, imported)
			}
			if room(imported) == "gitops" && room(of) != "gitops" && of != "cmd/castle-gitops" {
				t.Errorf("%s imports %s, which only castle-gitops does", of, imported)
			}
		}
	}
}

func TestTheVerbsAreThere(t *testing.T) {
	all := packages(t)
	for _, verb := range verbs {
		if _, is := all[verb]; !is {
			t.Errorf("there is no package %s: a rule about it holds nothing", verb)
		}
	}
}

func TestOnlyThePartsOfAProgramImportItsFolder(t *testing.T) {
	for of, imports := range packages(t) {
		for _, imported := range imports {
			if room(imported) == "cmd" && imported != "cmd/cli" {
				t.Errorf("%s imports %s, which is a program", of, imported)
			}
		}
	}
}

// The module hands each program's compiler only the folders that it is made of, so that what else changes compiles nothing
// anew. A package that is missing there would be found by a user.
func TestTheModuleCompilesAProgramFromAllThatItImports(t *testing.T) {
	all := packages(t)
	given := foldersInModule(t)
	for _, program := range []string{"castle-publish", "castle-cluster", "castle-sandbox", "castle-gitops", "castle-release"} {
		folders := append(slices.Clone(given[program]), "cmd/"+program)
		seen := map[string]bool{}
		var visit func(string)
		visit = func(of string) {
			if seen[of] {
				return
			}
			seen[of] = true
			if !slices.ContainsFunc(folders, func(folder string) bool { return of == folder || strings.HasPrefix(of, folder+"/") }) {
				t.Errorf("%s is part of %s, and .dagger/program.go does not give it to its compiler", of, program)
			}
			for _, imported := range all[of] {
				visit(imported)
			}
		}
		visit("cmd/" + program)
		for _, folder := range folders {
			if !slices.ContainsFunc(slices.Collect(maps.Keys(seen)), func(of string) bool { return of == folder || strings.HasPrefix(of, folder+"/") }) {
				t.Errorf(".dagger/program.go gives %s to the compiler of %s, which needs nothing of it", folder, program)
			}
		}
	}
}

// foldersInModule reads the table `rooms` of .dagger/program.go: a program's folders below ci.
func foldersInModule(t *testing.T) map[string][]string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), "../.dagger/program.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	text := func(expression ast.Expr) string {
		literal, is := expression.(*ast.BasicLit)
		if !is {
			return ""
		}
		value, err := strconv.Unquote(literal.Value)
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
	programs, found := map[string]string{}, map[string][]string{}
	ast.Inspect(file, func(node ast.Node) bool {
		spec, is := node.(*ast.ValueSpec)
		if !is || len(spec.Values) != 1 {
			return true
		}
		programs[spec.Names[0].Name] = text(spec.Values[0])
		table, is := spec.Values[0].(*ast.CompositeLit)
		if !is || spec.Names[0].Name != "rooms" {
			return true
		}
		for _, row := range table.Elts {
			pair := row.(*ast.KeyValueExpr)
			program := programs[pair.Key.(*ast.Ident).Name]
			for _, folder := range pair.Value.(*ast.CompositeLit).Elts {
				found[program] = append(found[program], text(folder))
			}
		}
		return true
	})
	return found
}

func room(of string) string {
	first, _, _ := strings.Cut(of, "/")
	return first
}

// packages are ours below ci, each with those of ours that it imports outside its tests.
func packages(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	err := filepath.WalkDir(".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && entry.Name() == "testdata" {
			if err == nil {
				err = fs.SkipDir
			}
			return err
		}
		folder := filepath.ToSlash(filepath.Dir(name))
		if entry.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || folder == "." {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		found[folder] = append(found[folder], []string{}...)
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if below, is := strings.CutPrefix(imported, module); is {
				found[folder] = append(found[folder], below)
			} else if imported == "tazlab.net/castle/gitops-template" {
				found[folder] = append(found[folder], template)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(found) < len(rooms) {
		t.Fatalf("%d packages were found: does this test still read what it should?", len(found))
	}
	return found
}
