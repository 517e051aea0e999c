package needs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tazlab.net/castle/ci/setup/gotool"
)

// ending is how a test ended; it stands in for that test.
type ending struct {
	testing.TB
	verb, text string
}

// Helper is called by everything in this package.
func (e *ending) Helper() {}

// Skipf ends the test.
func (e *ending) Skipf(format string, args ...any) { e.end("skip", fmt.Sprintf(format, args...)) }

// Fatalf ends the test.
func (e *ending) Fatalf(format string, args ...any) { e.end("fail", fmt.Sprintf(format, args...)) }

// Fatal ends the test.
func (e *ending) Fatal(args ...any) { e.end("fail", fmt.Sprint(args...)) }

func (e *ending) end(verb, text string) {
	e.verb, e.text = verb, text
	panic(e)
}

// of runs a test up to its end; "" is a test that ran through.
func of(test func(t testing.TB)) (end *ending) {
	end = new(ending)
	defer func() {
		if r := recover(); r != nil && r != end {
			panic(r)
		}
	}()
	test(end)
	return end
}

// needs are the ways in which a test may lack something here, and what it must be told.
func needs(t *testing.T) map[string]struct {
	test func(t testing.TB)
	says string
} {
	t.Setenv("CASTLE_CACHE", t.TempDir())
	t.Setenv("PATH", t.TempDir())
	run(t, false)
	type need = struct {
		test func(t testing.TB)
		says string
	}
	return map[string]need{
		"anything":  {func(t testing.TB) { Missing(t, "no %s; make one", "thing") }, "no thing; make one"},
		"a tool":    {func(t testing.TB) { Tool(t, "etcd") }, "etcd; to build: castle tool etcd"},
		"programs":  {func(t testing.TB) { Programs(t, "etcd", "tofu") }, "etcd, tofu; to build: castle tool etcd tofu"},
		"a command": {func(t testing.TB) { Command(t, "nginx-light", "nginx", "nginx2") }, "nginx is not installed: apt-get install --no-install-recommends nginx-light"},
	}
}

// run makes this a quick run, or none.
func run(t *testing.T, quick bool) {
	before := short
	short = func() bool { return quick }
	t.Cleanup(func() { short = before })
}

func TestAQuickRunLeavesOutWhatNeedsMoreThanGoAndGit(t *testing.T) {
	for _, require := range []string{"", "1"} {
		t.Setenv(requireAll, require)
		for name, need := range needs(t) {
			run(t, true)
			if end := of(need.test); name != "anything" && (end.verb != "skip" || !strings.HasPrefix(end.text, "NOT RUN: -short leaves out what needs ")) {
				t.Errorf("%s: %s %q", name, end.verb, end.text)
			}
		}
	}
}

func TestATestThatLacksSomethingIsSkippedAndToldWhatToDo(t *testing.T) {
	t.Setenv(requireAll, "")
	for name, need := range needs(t) {
		if end := of(need.test); end.verb != "skip" || !strings.HasPrefix(end.text, "NOT RUN: ") || !strings.Contains(end.text, need.says) {
			t.Errorf("%s: %s %q", name, end.verb, end.text)
		}
	}
	if end := of(func(t testing.TB) { FullRun(t, "makes much", "a large machine") }); end.verb != "skip" ||
		end.text != "NOT RUN: makes much; set CASTLE_REQUIRE_ALL=1 on a large machine" {
		t.Errorf("a full run: %s %q", end.verb, end.text)
	}
}

func TestATestThatLacksSomethingFailsWhereAllTestsAreRequired(t *testing.T) {
	for _, value := range []string{"1", "yes"} {
		t.Setenv(requireAll, value)
		for name, need := range needs(t) {
			if end := of(need.test); end.verb != "fail" || !strings.Contains(end.text, need.says) {
				t.Errorf("%s: %s %q", name, end.verb, end.text)
			}
		}
		if end := of(func(t testing.TB) { FullRun(t, "makes much", "a large machine") }); end.verb != "" {
			t.Errorf("a full run: %s %q", end.verb, end.text)
		}
	}
}

func TestAToolWithoutARecipeIsAMistakeAndNoReasonToSkip(t *testing.T) {
	run(t, false)
	t.Setenv(requireAll, "")
	if end := of(func(t testing.TB) { Tool(t, "no-such-tool") }); end.verb != "fail" || !strings.Contains(end.text, "no-such-tool") {
		t.Errorf("%s %q", end.verb, end.text)
	}
}

func TestRootIsAskedForOfOthersOnly(t *testing.T) {
	run(t, false)
	t.Setenv(requireAll, "")
	want := "skip"
	if os.Geteuid() == 0 {
		want = ""
	}
	if end := of(func(t testing.TB) { Root(t, "to mount") }); end.verb != want {
		t.Errorf("%s %q", end.verb, end.text)
	}
}

func TestBuiltToolsAreFoundInCastlesCache(t *testing.T) {
	run(t, false)
	folder := t.TempDir()
	t.Setenv("CASTLE_CACHE", folder)
	recipe, err := gotool.Load("kubernetes")
	if err != nil {
		t.Fatal(err)
	}
	built := gotool.Builder{Cache: filepath.Join(folder, "tools")}.Dir(recipe)
	if err := errors.Join(os.MkdirAll(built, 0o755), os.WriteFile(filepath.Join(built, "kubectl"), nil, 0o755)); err != nil {
		t.Fatal(err)
	}
	if got := Tool(t, "kubernetes"); got != built {
		t.Errorf("the folder is %s", got)
	}
	programs := Programs(t, "kubernetes")
	if len(programs) != len(recipe.Binaries) || programs["kubectl"] != filepath.Join(built, "kubectl") {
		t.Errorf("the programs are %v", programs)
	}
	if _, err := Find("kubernetes", "etcd"); err == nil || strings.Contains(err.Error(), "kubernetes") {
		t.Errorf("one is missing: %v", err)
	}
}

// scripts/test.sh runs the tests of a package a second time, without -short, only where they import this one.
func TestNobodyElseAsksForAQuickRun(t *testing.T) {
	const ask = "testing." + "Short("
	err := filepath.WalkDir(filepath.Join("..", ".."), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(name, ".go") {
			return err
		}
		source, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		if strings.Contains(string(source), ask) {
			t.Errorf("%s calls %s): use needs.UnlessShort, or `make test` will never run that test", name, ask)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
