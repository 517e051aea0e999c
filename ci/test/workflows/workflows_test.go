package workflows

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const repository = "../../.."

// roots are the folders that have workflows and actions.
var roots = []string{".github", "examples"}

func TestEveryWorkflowKeepsTheRules(t *testing.T) {
	checked := map[string]int{}
	together := map[string][]*File{} // by the repository that they are of
	for _, name := range files(t) {
		f, err := Read(name, engineVersion(t))
		if err != nil {
			t.Error(err)
			continue
		}
		f.Name, _ = filepath.Rel(repository, name)
		of, _, _ := strings.Cut(filepath.ToSlash(f.Name), ".github/")
		together[of] = append(together[of], f)
		checked[strings.Split(filepath.ToSlash(f.Name), "/")[0]]++
		for _, mistake := range f.Check() {
			t.Error(mistake)
		}
	}
	for _, files := range together {
		for _, mistake := range Shared(files) {
			t.Errorf("%s:%d: concurrency: %s", mistake.File.Name, mistake.At.Line, mistake.Text)
		}
	}
	if checked[".github"] < 3 || len(checked) < len(roots) {
		t.Errorf("only these were found: %v", checked)
	}
}

// files are the workflows and actions of this repository and of the examples.
func files(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, root := range roots {
		err := filepath.WalkDir(filepath.Join(repository, root), func(name string, entry fs.DirEntry, err error) error {
			slashed := filepath.ToSlash(name)
			if err == nil && !entry.IsDir() && filepath.Ext(name) == ".yaml" &&
				(strings.Contains(slashed, ".github/workflows/") || strings.Contains(slashed, ".github/actions/")) {
				all = append(all, name)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func engineVersion(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(repository, "dagger.json"))
	if err != nil {
		t.Fatal(err)
	}
	var module struct {
		EngineVersion string `json:"engineVersion"`
	}
	if err := json.Unmarshal(data, &module); err != nil || module.EngineVersion == "" {
		t.Fatalf("dagger.json has no engineVersion: %v", err)
	}
	return module.EngineVersion
}

var (
	wanted = regexp.MustCompile(`want: (.*)$`)
	// found is a mistake's line, rule and text.
	found = regexp.MustCompile(`:(\d+): (\w+): (.*)$`)
)

// Each file of testdata breaks the rule that it is named after, and no other, exactly where a comment wants that.
func TestWhatBreaksARuleIsTold(t *testing.T) {
	names, err := filepath.Glob("testdata/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			f, err := Read(name, "v0.19.10")
			if err != nil {
				t.Fatal(err)
			}
			rule, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(name), ".yaml"), "-")
			shown[rule] = true
			told := map[string]string{}
			for _, mistake := range f.Check() {
				parts := found.FindStringSubmatch(mistake)
				if parts[2] != rule {
					t.Errorf("another rule's: %s", mistake)
					continue
				}
				told[parts[1]] = parts[3]
			}
			some := false
			for i, line := range f.lines {
				at := fmt.Sprint(i + 1)
				match := wanted.FindStringSubmatch(line)
				switch {
				case match == nil && told[at] != "":
					t.Errorf("line %s is well, and was told of: %s", at, told[at])
				case match != nil && !strings.Contains(told[at], match[1]):
					t.Errorf("line %s: got %q, want %q", at, told[at], match[1])
				}
				some = some || match != nil
			}
			if !some {
				t.Error("it wants nothing")
			}
		})
	}
	for _, rule := range Rules {
		if !shown[rule.Name] {
			t.Errorf("testdata has no example that breaks the rule %s", rule.Name)
		}
	}
}
