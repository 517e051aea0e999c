package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/test/drill/stories"
)

// root is the repository, seen from this folder.
const root = "../../../.."

func TestWhatIsTakenOutOfCastleIsThere(t *testing.T) {
	all, err := load()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		text, err := os.ReadFile(filepath.Join(root, s.File))
		if err != nil {
			t.Errorf("%s: %v", s.Story, err)
			continue
		}
		if spoiled, err := s.spoiled(string(text)); err != nil || spoiled == string(text) {
			t.Errorf("%v; or nothing is changed in %s", err, s.File)
		}
	}
}

func TestEachStoryIsSpoiltForOneOfItsTests(t *testing.T) {
	all, err := load()
	if err != nil {
		t.Fatal(err)
	}
	for _, story := range stories.All() {
		of := func(s spoil) bool { return s.Story == story.Name }
		if !slices.ContainsFunc(all, of) {
			t.Errorf("spoils.yaml has nothing for the story %s", story.Name)
		}
		for _, s := range all {
			if of(s) && !slices.Contains(story.Tests, stories.Test(s.Test)) {
				t.Errorf("%s is spoilt for %s, which is no test of it", story.Name, s.Test)
			}
		}
	}
	for _, s := range all {
		if !slices.ContainsFunc(stories.All(), func(story stories.Story) bool { return story.Name == s.Story }) {
			t.Errorf("there is no story %s", s.Story)
		}
		if s.Without == "" {
			t.Errorf("%s: what is taken out is not said", s.Story)
		}
	}
}

func TestWhatDidNotRunIsNotRed(t *testing.T) {
	for _, c := range []struct {
		name, output string
		passed       bool
		want         string
	}{
		{"it failed", "=== RUN   TestA\n    a_test.go:1: no\n--- FAIL: TestA (0.00s)\nFAIL\n", false, wasRed},
		{"it did not end", "=== RUN   TestA\npanic: test timed out after 15m0s\n", false, wasRed},
		{"it passed", "=== RUN   TestA\n--- PASS: TestA (0.00s)\n", true, wasGreen},
		{"it was skipped", "=== RUN   TestA\n--- SKIP: TestA (0.00s)\n", true, neverRan},
		{"it lacked a tool", "=== RUN   TestA\n    a_test.go:1: CASTLE_REQUIRE_ALL is set, and the test cannot run: not built: etcd\n--- FAIL: TestA (0.00s)\nFAIL\n", false, neverRan},
		{"nothing compiled", "# tazlab.net/castle/ci/x\nx.go:1: undefined\nFAIL\n", false, neverRan},
		{"another ran", "=== RUN   TestAB\n--- PASS: TestAB (0.00s)\n", true, neverRan},
	} {
		if got := judge("TestA", c.output, c.passed); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

func TestATextThatIsThereTwiceIsRefused(t *testing.T) {
	if _, err := (spoil{Story: "a", File: "f", Text: "x", Becomes: "y"}).spoiled("x x"); err == nil || !strings.Contains(err.Error(), "2 times") {
		t.Error(err)
	}
}
