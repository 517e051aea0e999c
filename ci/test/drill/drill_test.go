package main

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/base/golden"
	"tazlab.net/castle/ci/test/drill/stories"
	"tazlab.net/castle/ci/test/tell"
)

// played are the results of what `go test -json` once said.
func played(t *testing.T, file string) *results {
	t.Helper()
	events, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer events.Close()
	all := newResults()
	for decoder := json.NewDecoder(events); ; {
		var e event
		if err := decoder.Decode(&e); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all.take(e)
	}
}

// told are stories of the recorded tests.
var told = []stories.Story{
	{Name: "webhook-late", Tests: []stories.Test{{Package: "test/scenarios", Name: "TestALife"}}},
	{Name: "half-way", Tests: []stories.Test{{Package: "test/scenarios", Name: "TestTrials"}, {Package: "cluster/gates", Name: "TestTheVMIsGone"}}},
	{Name: "refused", Tests: []stories.Test{{Package: "test/scenarios", Name: "TestRefused"}}},
	{Name: "red", Tests: []stories.Test{{Package: "cluster/gates", Name: "TestTheVMIsGone"}, {Package: "cluster/gates", Name: "TestRed"}}},
	{Name: "skipped", Tests: []stories.Test{{Package: "cluster/gates", Name: "TestSkipped"}}},
	{Name: "cut-off", Tests: []stories.Test{{Package: "cluster/gates", Name: "TestCutOff"}}},
	{Name: "elsewhere", Tests: []stories.Test{{Package: "cluster/gates", Name: "TestElsewhere"}}},
	{Name: "to-come"},
}

func TestTheTableTellsWhatTheTestsTold(t *testing.T) {
	golden.Match(t, "testdata/table.md", tabulate(told, played(t, "testdata/events.json")).Markdown())
}

func TestOnlyWhatPassedIsHeld(t *testing.T) {
	got := tabulate(told, played(t, "testdata/events.json"))
	if got.Held != 3 || got.Failed != 4 || got.Uncovered != 1 {
		t.Errorf("held %d, failed %d, not covered %d", got.Held, got.Failed, got.Uncovered)
	}
}

func TestWhatFailedIsShownWhole(t *testing.T) {
	shown := played(t, "testdata/events.json").failures()
	for _, text := range []string{"it was seen red", "panic: gates", "NOT RUN: no etcd"} {
		if !strings.Contains(shown, text) {
			t.Errorf("%q is not in\n%s", text, shown)
		}
	}
	if strings.Contains(shown, "webhook-late") {
		t.Errorf("what passed is shown, too:\n%s", shown)
	}
}

func TestTheWayBackBeginsAtTheLastFault(t *testing.T) {
	fault, well := tell.Line{Kind: tell.Injected}, func(verb string, seconds time.Duration) tell.Line {
		return tell.Line{Kind: tell.Ended, Text: verb, Took: seconds * time.Second}
	}
	for _, c := range []struct {
		name  string
		lines []tell.Line
		want  string
	}{
		{"nothing went wrong", []tell.Line{well("create", 30)}, ""},
		{"the next create", []tell.Line{well("create", 60), fault, well("create", 30), well("create", 40)}, "create 30 s"},
		{"the longest of two", []tell.Line{fault, well("create", 3), fault, well("create", 30)}, "create 30 s"},
		{"destroy and create", []tell.Line{fault, well("destroy", 5), well("create", 30)}, "destroy 5.0 s, create 30 s"},
		{"destroy alone", []tell.Line{fault, well("destroy", 5)}, "destroy 5.0 s"},
		{"two faults before one way back", []tell.Line{fault, fault, well("nuclear-wipe", 2)}, "nuclear-wipe 2.0 s"},
	} {
		if got, _ := recovery(c.lines); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestACellHasNothingThatIsOtherEachTime(t *testing.T) {
	got := cell([]string{"127.0.0.1:4711 has sha256:" + strings.Repeat("0123abcd", 8), "127.9.8.7 is for age1" + strings.Repeat("x", 58), strings.Repeat("long ", 99)})
	want := "127.0.0.1 has sha256:0123abc…; 127.0.0.1 is for age1…; " + strings.TrimSpace(strings.Repeat("long ", 99)[:mostOfText-1]) + "…"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestANameIsReadAsASentence(t *testing.T) {
	for name, want := range map[string]string{
		"TestTheVMIsGone": "the VM is gone", "TestATagIsNeverMoved": "a tag is never moved", "FuzzBump": "bump", "TestARaceForID2": "a race for ID2",
	} {
		if got := sentence(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestAStepHandsOverWhatGoTestSays(t *testing.T) {
	all, name := newResults(), stories.Test{Package: "test/drill/marked", Name: "TestAPageWithoutTheMarksIsRefused"}
	one := step{packages: []string{name.Package}, tests: []string{name.Name}}
	var said strings.Builder
	if err := one.run(t.Context(), "../../..", &said, all.take); err != nil {
		t.Fatal(err)
	}
	if of := all.tests[name]; len(all.tests) != 1 || of == nil || of.action != "pass" || !strings.Contains(said.String(), "pass "+name.Name) {
		t.Errorf("the results are %+v, and it said %q", all.tests, said.String())
	}

	// What cannot even be compiled is no test that passed.
	none := step{packages: []string{"test/drill/nothing"}, tests: []string{name.Name}}
	if err := none.run(t.Context(), "../../..", &said, all.take); err != nil || len(all.broken) == 0 {
		t.Errorf("%v: a package that is not there is broken: %v\n%s", err, all.broken, said.String())
	}
}

func TestAStepForEachKindOfTestPlaysAllStories(t *testing.T) {
	all := stories.All()
	list := steps(all, true)
	if len(list) != 3 || list[1].tests != nil {
		t.Fatalf("the steps are %+v", list)
	}
	if some := steps(all, false); some[1].tests == nil {
		t.Error("with some stories, all scenarios are played")
	}
	if _, err := chosen("webhook-late,nonsense"); err == nil || !strings.Contains(err.Error(), `"nonsense"`) {
		t.Errorf("an unknown story: %v", err)
	}
}
