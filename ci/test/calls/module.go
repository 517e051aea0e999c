// Package calls knows what can be typed behind `dagger call`, and finds what people are told to type: in documents, workflows
// and scripts. The module is read from its Go files, so that no engine is needed; what its objects of Dagger's own can do
// beside that stands in core.go.
package calls

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Module is what a module offers.
type Module struct {
	// Types are its objects by name, Castle among them, with those of Dagger's own.
	Types map[string]Type
	// Enums are the values that an argument of that type may have.
	Enums map[string][]string
	// New has the arguments that go before the first function.
	New Function
}

// Type has functions, as they are typed.
type Type map[string]Function

// Function is one of an object's.
type Function struct {
	// Arguments are known by their flags, without the dashes.
	Arguments map[string]Argument
	// Returns is the type that the next function is of, or none that has any.
	Returns string
	// Anew is that each call runs it: its answer is not kept.
	Anew bool
}

// Argument is one of a function's.
type Argument struct {
	// Type is that of one value, without pointer, list and package.
	Type     string
	Required bool
}

// mainType is the object that New makes.
const mainType = "Castle"

// Read reads the module whose Go files are in a folder.
func Read(folder string) (*Module, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	m := &Module{Types: maps.Clone(core), Enums: map[string][]string{}}
	for _, name := range names {
		fset := token.NewFileSet()
		file, err := parser.ParseFile(fset, name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		r := reader{m, pragmas(fset, file), fset}
		for _, declaration := range file.Decls {
			switch declaration := declaration.(type) {
			case *ast.FuncDecl:
				r.function(declaration)
			case *ast.GenDecl:
				for _, spec := range declaration.Specs {
					r.field(spec)
					r.constant(spec)
				}
			}
		}
	}
	if len(m.Types[mainType]) == 0 {
		return nil, fmt.Errorf("%s has no functions of %s", folder, mainType)
	}
	return m, nil
}

// reader reads one file.
type reader struct {
	*Module
	comments map[int]string
	fset     *token.FileSet
}

// pragmas are the texts of comments by the line that follows them: go/parser gives them to a struct's fields, and not to a
// function's parameters.
func pragmas(fset *token.FileSet, file *ast.File) map[int]string {
	above := map[int]string{}
	for _, group := range file.Comments {
		var text strings.Builder // not group.Text, which leaves directives out
		for _, line := range group.List {
			text.WriteString(line.Text + "\n")
		}
		above[fset.Position(group.End()).Line+1] = text.String()
	}
	return above
}

func (r *reader) above(node ast.Node) string { return r.comments[r.fset.Position(node.Pos()).Line] }

func (r *reader) add(of, name string, f Function) {
	if r.Types[of] == nil {
		r.Types[of] = Type{}
	}
	r.Types[of][kebab(name)] = f
}

func (r *reader) function(declared *ast.FuncDecl) {
	if !declared.Name.IsExported() {
		return
	}
	f := Function{Arguments: map[string]Argument{}, Anew: declared.Doc != nil && strings.Contains(declared.Doc.Text(), `+cache="never"`)}
	for _, field := range declared.Type.Params.List {
		of := typeName(field.Type)
		if of == "Context" {
			continue
		}
		text := r.above(field)
		optional := strings.Contains(text, "// +optional") || strings.Contains(text, "// +default")
		for _, name := range field.Names {
			f.Arguments[kebab(name.Name)] = Argument{Type: of, Required: !optional}
		}
	}
	if results := declared.Type.Results; results != nil && len(results.List) > 0 {
		f.Returns = typeName(results.List[0].Type)
	}
	switch {
	case declared.Recv != nil:
		if of := typeName(declared.Recv.List[0].Type); ast.IsExported(of) {
			r.add(of, declared.Name.Name, f)
		}
	case declared.Name.Name == "New":
		r.New = f
	}
}

// field reads a struct: what it shows can be called as well.
func (r *reader) field(spec ast.Spec) {
	of, is := spec.(*ast.TypeSpec)
	if !is || !of.Name.IsExported() {
		return
	}
	structure, is := of.Type.(*ast.StructType)
	if !is {
		return
	}
	for _, field := range structure.Fields.List {
		for _, name := range field.Names {
			if name.IsExported() && !strings.Contains(r.above(field), "// +private") {
				r.add(of.Name.Name, name.Name, Function{Returns: typeName(field.Type)})
			}
		}
	}
}

// constant reads a value of an enum.
func (r *reader) constant(spec ast.Spec) {
	value, is := spec.(*ast.ValueSpec)
	if !is || value.Type == nil || len(value.Values) != 1 || !value.Names[0].IsExported() {
		return
	}
	if literal, is := value.Values[0].(*ast.BasicLit); is && literal.Kind == token.STRING {
		text, _ := strconv.Unquote(literal.Value)
		of := typeName(value.Type)
		r.Enums[of] = append(r.Enums[of], text)
	}
}

// typeName is a type without pointer, list and package.
func typeName(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return typeName(of.X)
	case *ast.ArrayType:
		return typeName(of.Elt)
	case *ast.SelectorExpr:
		return of.Sel.Name
	case *ast.Ident:
		return of.Name
	}
	return ""
}

var capital = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// kebab is a name as the dagger command has it.
func kebab(name string) string { return strings.ToLower(capital.ReplaceAllString(name, "$1-$2")) }

// Flags are those of any function, without the dashes.
func (m *Module) Flags() map[string]bool {
	flags := map[string]bool{}
	for _, of := range m.Types {
		for _, f := range of {
			for name := range f.Arguments {
				flags[name] = true
			}
		}
	}
	for name := range m.New.Arguments {
		flags[name] = true
	}
	return flags
}

// required are the flags that a function cannot do without.
func (f Function) required() []string {
	var names []string
	for name, argument := range f.Arguments {
		if argument.Required {
			names = append(names, name)
		}
	}
	return slices.Sorted(slices.Values(names))
}
