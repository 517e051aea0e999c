package ci

import (
	"os"
	"regexp"
	"testing"
)

// One version of Dagger is written where each of its readers can find it.
func TestEverybodyNamesTheSameDagger(t *testing.T) {
	named := map[string]string{}
	for file, places := range map[string]string{
		"../dagger.json":                          `"engineVersion": "(v[0-9.]+)"`,
		"../.dagger/doctor.go":                    `madeFor = "(v[0-9.]+)"`,
		"../.github/actions/dagger/action.yaml":   `X64: (v[0-9.]+) `,
		"setup/gotool/recipes/dagger/recipe.yaml": `(?m)^version: (v[0-9.]+)$`,
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(places).FindSubmatch(text)
		if found == nil {
			t.Fatalf("%s names no version of Dagger: does this test still read what it should?", file)
		}
		named[string(found[1])] += " " + file
	}
	if len(named) != 1 {
		t.Errorf("several versions of Dagger are named: %v", named)
	}
}
