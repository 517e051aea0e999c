package timeline

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files anew")

// edges are the layers' dependencies as a cluster has them.
var edges = map[string][]string{
	"secrets": nil, "platform": {"secrets"}, "engine": {"platform"}, "networking": {"platform"}, "storage": {"platform"}, "gitops": {"engine"},
}

var samples = []struct{ name string }{{"homelab"}, {"failed"}, {"interrupted"}}

func build(t *testing.T, sample string, list ...Option) Timeline {
	t.Helper()
	events, err := Read(filepath.Join("testdata", sample+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return Build(events, edges, list...)
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("%s is not as it was; run with -update and look at what changed. It is now:\n%s", file, got)
	}
}

func TestARunIsRenderedAsJSONMarkdownAndHTML(t *testing.T) {
	for _, sample := range samples {
		made := build(t, sample.name)
		for kind, render := range map[string]func() ([]byte, error){"json": made.JSON, "md": made.Markdown, "html": made.HTML} {
			data, err := render()
			if err != nil {
				t.Fatalf("%s as %s: %v", sample.name, kind, err)
			}
			golden(t, sample.name+"."+kind, data)
		}
	}
}

func TestTheJSONCanBeReadAgain(t *testing.T) {
	made := build(t, "homelab")
	data, err := made.JSON()
	if err != nil {
		t.Fatal(err)
	}
	var read Timeline
	if err := json.Unmarshal(data, &read); err != nil {
		t.Fatal(err)
	}
	again, err := read.JSON()
	if err != nil || string(again) != string(data) {
		t.Errorf("%v, got\n%s", err, again)
	}
}

func TestTheCriticalPathFollowsWhatBoundedEachStart(t *testing.T) {
	made := build(t, "homelab")
	var path []string
	for _, link := range made.Critical {
		path = append(path, link.Layer)
	}
	if want := []string{"secrets", "platform", "engine", "gitops"}; !slices.Equal(path, want) {
		t.Fatalf("the path is %v, want %v", path, want)
	}
	for _, layer := range made.Layers {
		if layer.Critical != slices.Contains(path, layer.Name) {
			t.Errorf("%s is marked critical: %t", layer.Name, layer.Critical)
		}
	}
	last := made.Critical[3]
	if last.Longest != "Kustomizations" || last.Wait.String() != "0.8 s" || made.Critical[1].Longest != "nodes" {
		t.Errorf("got %+v", made.Critical)
	}
}

func TestASlowSideBranchBecomesTheCriticalPath(t *testing.T) {
	log := story{t: t}
	log.run()
	log.layer("platform", 0, 10, ResultOK)
	log.layer("engine", 10, 20, ResultOK)
	log.layer("storage", 10, 90, ResultOK)
	log.layer("gitops", 20, 40, ResultOK)
	made := Build(log.events, edges)
	if path := []string{made.Critical[0].Layer, made.Critical[1].Layer}; len(made.Critical) != 2 || path[0] != "platform" || path[1] != "storage" {
		t.Errorf("got %+v", made.Critical)
	}
}

func TestOfSeveralNeededLayersTheLastToEndBoundsTheStart(t *testing.T) {
	for _, slow := range []string{"engine", "networking"} {
		log := story{t: t}
		log.run()
		log.layer("engine", 0, map[bool]float64{true: 30, false: 20}[slow == "engine"], ResultOK)
		log.layer("networking", 0, map[bool]float64{true: 30, false: 20}[slow == "networking"], ResultOK)
		log.layer("gitops", 31, 60, ResultOK)
		made := Build(log.events, map[string][]string{"gitops": {"engine", "networking"}})
		if len(made.Critical) != 2 || made.Critical[0].Layer != slow || made.Critical[1].Wait != Seconds(time.Second) {
			t.Errorf("with a slow %s: %+v", slow, made.Critical)
		}
	}
}

func TestALayerThatWaitsOnItsWayCountsFromTheEndOfTheOther(t *testing.T) {
	log := story{t: t}
	log.run()
	log.layer("platform", 0, 10, ResultOK)
	log.layer("engine", 10, 30, ResultOK)
	log.layer("gitops", 11, 45, ResultOK)
	made := Build(log.events, map[string][]string{"engine": {"platform"}, "gitops": {"platform", "engine"}})
	if len(made.Critical) != 3 || made.Critical[1].Layer != "engine" {
		t.Fatalf("got %+v", made.Critical)
	}
	if last := made.Critical[2]; last.Took != Seconds(15*time.Second) || last.Wait != 0 {
		t.Errorf("gitops is on the path with %+v", last)
	}
	if made.unaccounted() != 0 {
		t.Errorf("%s are not on the path", made.unaccounted())
	}
}

func TestALayerThatIsNotInTheRunPassesOnWhatItNeeds(t *testing.T) {
	log := story{t: t}
	log.run()
	log.layer("platform", 0, 10, ResultOK)
	log.layer("engine", 0, 0, ResultSkipped)
	log.layer("gitops", 12, 40, ResultOK)
	made := Build(log.events, edges)
	if len(made.Critical) != 2 || made.Critical[0].Layer != "platform" || made.Critical[1].Wait != Seconds(2*time.Second) {
		t.Errorf("got %+v", made.Critical)
	}
}

func TestEdgesInACircleEnd(t *testing.T) {
	log := story{t: t}
	log.run()
	log.layer("a", 0, 1, ResultOK)
	log.layer("b", 1, 2, ResultOK)
	made := Build(log.events, map[string][]string{"a": {"b"}, "b": {"a"}})
	if len(made.Critical) != 2 {
		t.Errorf("got %+v", made.Critical)
	}
}

func TestAFailureTellsLayerGateCauseAndHowToGoOn(t *testing.T) {
	f := build(t, "failed").Failure
	if f == nil {
		t.Fatal("there is no failure")
	}
	if f.Layer != "networking" || f.Gate != "webhook metallb-webhook-service in metallb-system" {
		t.Errorf("failed in %s at %s", f.Layer, f.Gate)
	}
	if !strings.Contains(f.Cause, "ImagePullBackOff") || f.NextCommand() != "dagger call create --cluster sandbox" ||
		f.NextWords() != "To go on where it stopped" || !strings.HasPrefix(f.Look, "kubectl -n metallb-system") {
		t.Errorf("got %+v", f)
	}
}

func TestTheFirstLayerThatFailedIsTheFailure(t *testing.T) {
	log := story{t: t}
	log.run()
	log.layer("storage", 0, 30, ResultFailed)
	log.layer("engine", 0, 20, ResultFailed)
	log.add(31, Event{Kind: KindRun, Name: "create", Phase: PhaseEnd, Result: ResultFailed, Cause: "two layers failed"})
	if f := Build(log.events, edges).Failure; f == nil || f.Layer != "engine" {
		t.Errorf("got %+v", f)
	}
}

func TestAFailureIsNotOverwrittenByASecondEnd(t *testing.T) {
	log := story{t: t}
	log.run()
	log.layer("engine", 0, 20, ResultFailed)
	log.add(21, Event{Kind: KindLayer, Layer: "engine", Phase: PhaseEnd, Result: ResultOK})
	if got := Build(log.events, edges).Layers[0]; got.Result != ResultFailed || got.Took != Seconds(20*time.Second) {
		t.Errorf("got %+v", got)
	}
}

func TestWhatHasNoEndIsCalledInterrupted(t *testing.T) {
	made := build(t, "interrupted")
	results := map[string]string{}
	for _, layer := range made.Layers {
		results[layer.Name] = layer.Result
	}
	if made.Result != ResultInterrupted || results["platform"] != ResultOK || results["engine"] != ResultInterrupted || results["storage"] != ResultInterrupted {
		t.Errorf("the run is %s, its layers %v", made.Result, results)
	}
	if made.Failure == nil || !strings.Contains(made.Failure.Cause, "\n  storage, gate DaemonSet longhorn-manager in longhorn-system: 0 of 2 pods available\n") {
		t.Errorf("got %+v", made.Failure)
	}
	if made.Failure.NextCommand() != "dagger call create --cluster sandbox" {
		t.Errorf("to go on: %q", made.Failure.Next)
	}
}

func TestEventsAtTheSameInstantHaveNoLength(t *testing.T) {
	log := story{t: t}
	log.run()
	log.layer("secrets", 0, 0, ResultOK)
	log.add(0, Event{Kind: KindRun, Name: "create", Phase: PhaseEnd, Result: ResultOK})
	made := Build(log.events, edges)
	if made.Total != 0 || made.Layers[0].Took != 0 {
		t.Errorf("got %+v", made)
	}
	for _, render := range []func() ([]byte, error){made.JSON, made.Markdown, made.HTML} {
		if data, err := render(); err != nil || strings.Contains(string(data), "NaN") || strings.Contains(string(data), "Inf") {
			t.Errorf("%v\n%s", err, data)
		}
	}
}

func TestALogWithoutEventsIsRendered(t *testing.T) {
	made := Build(nil, edges)
	for _, render := range []func() ([]byte, error){made.JSON, made.Markdown, made.HTML} {
		if _, err := render(); err != nil {
			t.Error(err)
		}
	}
}

func TestAClockThatRunsBackMakesNoNegativeTimes(t *testing.T) {
	log := story{t: t}
	log.run()
	log.add(10, Event{Kind: KindLayer, Layer: "engine", Phase: PhaseStart})
	log.add(8, Event{Kind: KindLayer, Layer: "engine", Phase: PhaseEnd, Result: ResultOK})
	for _, layer := range Build(log.events, edges).Layers {
		if layer.Took < 0 || layer.Start < 0 {
			t.Errorf("got %+v", layer)
		}
	}
}

func TestTextsCannotBreakOutOfThePageOrTheSummary(t *testing.T) {
	log := story{t: t}
	log.run()
	evil := "</pre><script>alert(1)</script> | *x* ```` fence"
	log.add(1, Event{Kind: KindLayer, Layer: evil, Phase: PhaseStart})
	log.add(2, Event{Kind: KindLayer, Layer: evil, Phase: PhaseEnd, Result: ResultFailed, Cause: evil})
	log.add(2, Event{Kind: KindRun, Name: "create", Phase: PhaseEnd, Result: ResultFailed, Cause: evil})
	made := Build(log.events, edges)
	html, err := made.HTML()
	if err != nil || strings.Contains(string(html), "<script") {
		t.Errorf("%v, or the page has a script", err)
	}
	markdown, err := made.Markdown()
	if err != nil || strings.Contains(strings.Split(string(markdown), "`````")[0], "<script") || !strings.Contains(string(markdown), "\n`````text\n") {
		t.Errorf("%v, got\n%s", err, markdown)
	}
}

// story makes events at seconds after a start.
type story struct {
	t      *testing.T
	events []Event
}

var dawn = time.Date(2026, 3, 7, 20, 0, 0, 0, time.UTC)

func (s *story) add(at float64, event Event) {
	s.t.Helper()
	event.Time = dawn.Add(time.Duration(at * float64(time.Second)))
	s.events = append(s.events, event)
}

func (s *story) run() {
	s.add(0, Event{Kind: KindRun, Cluster: "sandbox", Name: "create", Phase: PhaseStart})
}

func (s *story) layer(name string, from, to float64, result string) {
	s.add(from, Event{Kind: KindLayer, Layer: name, Phase: PhaseStart})
	s.add(to, Event{Kind: KindLayer, Layer: name, Phase: PhaseEnd, Result: result})
}
