package calls

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const repository = "../../.."

func TestEachCallThatIsWrittenDownIsOneOfTheModules(t *testing.T) {
	m := module(t)
	checked := map[string]int{}
	for name, find := range files(t) {
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		found, err := find(source)
		name, _ = filepath.Rel(repository, name)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, call := range found {
			checked[strings.Split(filepath.ToSlash(name), "/")[0]]++
			for _, mistake := range m.Check(call) {
				t.Errorf("%s:%d: %s\n\t%s", name, call.Line, mistake, strings.ReplaceAll(strings.Join(call.Words, " "), unknown, "$…"))
			}
		}
	}
	// A way to find calls that finds none would hold nothing.
	for where, least := range map[string]int{"README.md": 1, "docs": 100, ".github": 1, "scripts": 1, "Makefile": 1, "terragrunt": 8, "gitops-template": 3, "blog": 4} {
		if checked[where] < least {
			t.Errorf("in %s only %d calls were found, of at least %d", where, checked[where], least)
		}
	}
}

// files are those that tell people or machines what to type, each with how commands are found in it.
func files(t *testing.T) map[string]func([]byte) ([]Found, error) {
	t.Helper()
	all := map[string]func([]byte) ([]Found, error){}
	err := filepath.WalkDir(repository, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if slices.Contains([]string{".git", "testdata", "node_modules", "internal"}, entry.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		switch base := entry.Name(); {
		case base == "Makefile":
			all[name] = InMakefile
		case strings.HasSuffix(base, ".md.tmpl"), strings.HasSuffix(base, ".md") && strings.Contains(name, "gitops-template"):
			all[name] = func(source []byte) ([]Found, error) { return InMarkdown(filledIn(source)) }
		case strings.HasSuffix(base, ".md"):
			all[name] = InMarkdown
		case strings.HasSuffix(base, ".sh"), filepath.Base(filepath.Dir(name)) == ".ci":
			all[name] = InScript
		case strings.HasSuffix(base, ".yaml") && strings.Contains(filepath.ToSlash(name), "/.github/"):
			all[name] = InWorkflow
		case strings.HasSuffix(base, ".yaml"), strings.HasSuffix(base, ".yaml.tmpl"):
			all[name] = func(source []byte) ([]Found, error) { return InComments(filledIn(source)) }
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// placeholder is what a template's text has for what is filled in.
var placeholder = regexp.MustCompile(`\{\{[^}]*\}\}|\[\[.*?\]\]`)

func filledIn(source []byte) []byte { return placeholder.ReplaceAll(source, []byte("NAME")) }

func module(t *testing.T) *Module {
	t.Helper()
	m, err := Read(filepath.Join(repository, ".dagger"))
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestWhatAsksAClusterOrARegistryIsAskedEachTime(t *testing.T) {
	m := module(t)
	for of, functions := range m.Types {
		for name, f := range functions {
			if _, ours := m.Types[f.Returns]; of != mainType && of != "Cluster" && of != "Site" || ours && core[f.Returns] == nil {
				continue // Dagger's own, or what is only remembered for the next function
			}
			for flag, argument := range f.Arguments {
				if argument.Type == "Secret" && !f.Anew {
					t.Errorf(`%s of %s has --%s to ask somebody with, and answers from a cache: it needs +cache="never"`, name, of, flag)
				}
			}
		}
	}
}

func TestWhatCannotBeCalledIsTold(t *testing.T) {
	m := &Module{
		Types: map[string]Type{
			"Castle": {
				"publish": {Arguments: map[string]Argument{"site": {Type: "string", Required: true}, "dry-run": {Type: "bool"}, "format": {Type: "Format"}}, Returns: "string"},
				"files":   {Returns: "Directory"},
				"image":   {Returns: "Container"},
			},
			"Directory": core["Directory"],
			"Container": core["Container"],
		},
		Enums: map[string][]string{"Format": {"TEXT", "JSON"}},
		New:   Function{Arguments: map[string]Argument{"state": {Type: "string"}}},
	}
	for _, test := range []struct{ line, want string }{
		{"dagger call publish --site blog --dry-run --format JSON", ""},
		{"dagger call --state local -y publish --site=blog", ""},
		{"dagger -m github.com/ME/castle call castle publish --site blog", ""},
		{"dagger --progress plain -q call publish --site blog | tee log", ""},
		{`exec dagger call publish --site "$SITE" --format "$FORMAT"`, ""},
		{"dagger call publish --help", ""},
		{"dagger call publish …", ""},
		{`dagger call publish "${flags[@]}"`, ""},
		{"dagger call files export --path there", ""},
		{"dagger check", ""},
		{"dagger call publich --site blog", `dagger call: there is no "publich" behind it`},
		{"dagger call", "dagger call names no function"},
		{"dagger call publish --sight blog", "publish has no --sight: it has --dry-run --format --site"},
		{"dagger call publish --dry-run", "publish needs --site"},
		{"dagger call publish --site --dry-run", "publish --site has no value"},
		{"dagger call publish --site blog --format YAML", `publish --format cannot be "YAML": it is one of TEXT, JSON`},
		{"dagger call publish --site blog --state local", "publish has no --state: it has --dry-run --format --site"},
		{"dagger call publish --site blog export --path there", `publish: there is no "export" behind it`},
		{"dagger call files export", "export needs --path"},
		{"dagger call files export --path there --wipes", "export has no --wipes: it has --path --wipe"},
		{"time dagger call image publish --adress here", "publish has no --adress: it has --address --forced-compression --media-types --platform-variants"},
		{"x=$(dagger call publich)", `dagger call: there is no "publich" behind it`},
	} {
		t.Run(test.line, func(t *testing.T) {
			found, err := inShell(test.line, 1)
			if err != nil || len(found) != 1 {
				t.Fatalf("found %v, %v", found, err)
			}
			if got := strings.Join(m.Check(found[0]), "; "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestASentenceMayNameACallWithoutItsFlags(t *testing.T) {
	m := module(t)
	for source, want := range map[string]string{
		"`dagger call create` does.":               "",
		"`dagger call create --format JSON` does.": "create needs --cluster",
		"`dagger call creates` does.":              `dagger call: there is no "creates" behind it`,
		"```\n$ dagger call create\n```\n":         "create needs --cluster",
	} {
		found, err := InMarkdown([]byte(source))
		if err != nil || len(found) != 1 {
			t.Fatalf("%q: found %v, %v", source, found, err)
		}
		if got := strings.Join(m.Check(found[0]), "; "); got != want {
			t.Errorf("%q: got %q, want %q", source, got, want)
		}
	}
}

func TestArgumentsAreReadWithWhatTheirCommentsSay(t *testing.T) {
	folder := t.TempDir()
	err := os.WriteFile(filepath.Join(folder, "main.go"), []byte(`package main

type Castle struct {
	// +private
	Hidden string
	Shown  string
}

type Mood string

const MoodGood Mood = "GOOD"

func New(
	// +optional
	state string,
) *Castle { return nil }

// Do does.
//
// +cache="never"
func (m *Castle) Do(
	ctx context.Context,
	// What must be said.
	siteName string,
	// What need not.
	// +optional
	hint []string,
	// +default="GOOD"
	mood Mood,
	// +defaultPath="/"
	// +ignore=["x"]
	source *dagger.Directory,
) (*dagger.File, error) {
	return nil, nil
}

func (m *Castle) hidden() {}
`), 0o600)
	if err != nil {
		t.Fatal(err)
	}
	m, err := Read(folder)
	if err != nil {
		t.Fatal(err)
	}
	want := `map[do:{map[hint:{string false} mood:{Mood false} site-name:{string true} source:{Directory false}] File true} shown:{map[] string false}]`
	if got := fmt.Sprint(m.Types[mainType]); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := fmt.Sprint(m.Enums, m.New); got != "map[Mood:[GOOD]] {map[state:{string false}] Castle false}" {
		t.Errorf("got %s", got)
	}
}

func TestCallsAreFoundWhereTheyAreTyped(t *testing.T) {
	for _, test := range []struct {
		name   string
		find   func([]byte) ([]Found, error)
		source string
		want   string
	}{
		{"code in a line", InMarkdown, "Type\n`dagger call a\n--b c`, not dagger call d.", "[{2 [dagger call a --b c] true}]"},
		{"a block, with what is answered", InMarkdown, "```console\n$ dagger -m x call a \\\n    --b c\nfile     dagger call d > e\n```\n", "[{2 [dagger -m x call a --b c] false} {4 [dagger call d] false}]"},
		{"a comment in a block", InMarkdown, "```yaml\nx: y # by `dagger call a`; default: z\n```\n", "[{2 [dagger call a] true}]"},
		{"a row of a table", InMarkdown, "| a | b |\n|---|---|\n| `dagger call a` | `make b` |\n", "[{3 [dagger call a] true}]"},
		{"a step", InWorkflow, "# As `dagger call z`.\njobs:\n  a:\n    steps:\n      - run: |\n          cd b\n          dagger call a --b \"$B\" | tee\n", "[{1 [dagger call z] true} {7 [dagger call a --b \x00] false}]"},
		{"a script", InScript, "# `dagger call z\n# --y x` does\nif dagger call a; then\n\texit 1\nfi\n", "[{3 [dagger call a] false} {1 [dagger call z --y x] true}]"},
		{"flags in an array", InScript, "f=(--b)\n[ -z \"$C\" ] || f+=(--c \"$C\")\ndagger call a \"${f[@]}\" \"${g[@]}\"\n", "[{3 [dagger call a --b --c \x00 \x00] false}]"},
		{"a recipe", InMakefile, "a:\n\t@dagger call a --b=\"$$(uname)\"\n", "[{2 [dagger call a --b=\x00] false}]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			found, err := test.find([]byte(test.source))
			if err != nil {
				t.Fatal(err)
			}
			if got := fmt.Sprint(found); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}
