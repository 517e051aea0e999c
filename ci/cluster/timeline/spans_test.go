package timeline

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"
	"time"

	"tazlab.net/castle/ci/base/tracing/tracingtest"
)

// spansOf are the spans of events that are shown one after the other.
func spansOf(t *testing.T, events []Event) *tracingtest.Receiver {
	t.Helper()
	ctx, stop, received := tracingtest.Trace(t)
	spans := NewSpans(ctx)
	for _, event := range events {
		spans.Show(event)
	}
	spans.Close(events[len(events)-1].Time)
	stop()
	return received
}

func TestARunIsToldInSpans(t *testing.T) {
	for _, sample := range samples {
		t.Run(sample.name, func(t *testing.T) {
			events, err := Read(filepath.Join("testdata", sample.name+".jsonl"))
			if err != nil {
				t.Fatal(err)
			}
			golden(t, sample.name+".spans", []byte(spansOf(t, events).Tree()))
		})
	}
}

func TestASpanSaysWhatAndWhereItWas(t *testing.T) {
	log := story{t: t}
	log.run()
	log.add(1, Event{Kind: KindLayer, Cluster: "sandbox", Layer: "platform", Phase: PhaseStart})
	log.add(1, Event{Kind: KindStep, Cluster: "sandbox", Layer: "platform", Name: "bootstrap", Phase: PhaseStart})
	log.add(2, Event{Kind: KindGate, Cluster: "sandbox", Layer: "platform", Name: "nodes", Phase: PhaseStart})
	log.add(3, Event{Kind: KindGate, Cluster: "sandbox", Layer: "platform", Name: "nodes", Phase: PhaseWaiting, Cause: "2 of 3 ready"})
	log.add(4.5, Event{Kind: KindGate, Cluster: "sandbox", Layer: "platform", Name: "nodes", Phase: PhaseEnd, Result: ResultFailed, Cause: "too late", Next: "kubectl get nodes"})
	received := spansOf(t, log.events)
	for span, attributes := range map[string]map[string]string{
		"create sandbox": {"castle.cluster": "sandbox"},
		"layer platform": {"castle.cluster": "sandbox", "castle.layer": "platform", "dagger.io/ui.reveal": "true", "castle.result": ResultInterrupted},
		"step bootstrap": {"castle.layer": "platform", "castle.step": "bootstrap", "dagger.io/ui.reveal": ""},
		"gate nodes": {"castle.cluster": "sandbox", "castle.layer": "platform", "castle.gate": "nodes", "castle.seen": "2 of 3 ready",
			"castle.result": ResultFailed, "castle.next": "kubectl get nodes"},
	} {
		for name, want := range attributes {
			if got := received.Attribute(span, name); got != want {
				t.Errorf("%s of %s is %q, want %q", name, span, got, want)
			}
		}
	}
	gate := received.Named("gate nodes")
	if took := time.Duration(gate.EndTimeUnixNano - gate.StartTimeUnixNano); took != 2500*time.Millisecond {
		t.Errorf("the gate took %s", took)
	}
}

// The hook that notes a layer's failure does not know its cause; castle notes it again, out of the tools' output.
func TestALayersFailureIsToldWithItsCause(t *testing.T) {
	for title, after := range map[string][]Event{
		"told later":            {{Kind: KindLayer, Layer: "engine", Phase: PhaseEnd, Result: ResultFailed, Cause: "no such chart"}},
		"not told":              nil,
		"a success after it":    {{Kind: KindLayer, Layer: "engine", Phase: PhaseEnd, Result: ResultOK}},
		"tried again with luck": {{Kind: KindLayer, Layer: "engine", Phase: PhaseStart}, {Kind: KindLayer, Layer: "engine", Phase: PhaseEnd, Result: ResultOK}},
	} {
		t.Run(title, func(t *testing.T) {
			log := story{t: t}
			log.run()
			log.layer("engine", 0, 20, ResultFailed)
			for i, event := range after {
				log.add(float64(21+i), event)
			}
			log.add(30, Event{Kind: KindRun, Name: "create", Phase: PhaseEnd, Result: ResultFailed, Cause: "engine failed"})
			want := "create sandbox: error: engine failed\n  layer engine: error: " + map[bool]string{true: "no such chart", false: "failed"}[title == "told later"] + "\n"
			if title == "tried again with luck" {
				want += "  layer engine: ok\n"
			}
			if got := spansOf(t, log.events).Tree(); got != want {
				t.Errorf("got\n%s, want\n%s", got, want)
			}
		})
	}
}

// Layers and gates are written by other processes, and the run's end comes just before castle stops to follow.
func TestWhoFollowsALogMakesItsSpansWhileItIsWritten(t *testing.T) {
	ctx, stop, received := tracingtest.Trace(t)
	following, end := context.WithCancel(ctx)
	name := filepath.Join(t.TempDir(), "events.jsonl")
	log, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- Follow(following, name, &bytes.Buffer{}) }()
	write := func(event Event) {
		t.Helper()
		if err := log.Append(event); err != nil {
			t.Fatal(err)
		}
	}
	write(Event{Kind: KindRun, Name: "create", Phase: PhaseStart})
	write(Event{Kind: KindLayer, Layer: "engine", Phase: PhaseStart})
	received.AwaitBegun("layer engine")
	write(Event{Kind: KindLayer, Layer: "engine", Phase: PhaseEnd, Result: ResultOK})
	write(Event{Kind: KindRun, Name: "create", Phase: PhaseEnd, Result: ResultOK})
	end()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	stop()
	if tree := received.Tree(); tree != "create: ok\n  layer engine: ok\n" {
		t.Errorf("got\n%s", tree)
	}
}
