package timeline

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/base/redact/redacttest"
	"tazlab.net/castle/ci/base/tracing/tracingtest"
)

// The log is redacted when it is written; where a process does not know a value, still whatever is made of the log is.
func TestNoCanaryIsInTheLogTheLinesTheSpansOrTheReports(t *testing.T) {
	redact.Add(redacttest.Token, redacttest.Key, redacttest.YAML)
	leaks := redacttest.Leaks(t)
	events := []Event{{Kind: KindRun, Name: "create", Cluster: "sandbox", Phase: PhaseStart}}
	for name, text := range leaks {
		events = append(events,
			Event{Kind: KindLayer, Layer: name, Phase: PhaseStart},
			Event{Kind: KindGate, Layer: name, Name: "gate " + text, Phase: PhaseStart},
			Event{Kind: KindGate, Layer: name, Name: "gate " + text, Phase: PhaseWaiting, Cause: text},
			Event{Kind: KindGate, Layer: name, Name: "gate " + text, Phase: PhaseEnd, Result: ResultFailed, Cause: text, Next: text},
			Event{Kind: KindLayer, Layer: name, Phase: PhaseEnd, Result: ResultFailed, Cause: strings.Repeat("filler ", 580) + text, Next: text})
	}
	events = append(events, Event{Kind: KindRun, Name: "create", Phase: PhaseEnd, Result: ResultFailed, Cause: leaks["plain"], Next: leaks["plain"]})
	for i := range events {
		events[i].Time = dawn.Add(time.Duration(i) * time.Second)
	}

	name := filepath.Join(t.TempDir(), "events.jsonl")
	log, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop, received := tracingtest.Trace(t)
	var lines bytes.Buffer
	steps, spans := NewSteps(&lines), NewSpans(ctx)
	for _, event := range events {
		if err := log.Append(event); err != nil {
			t.Fatal(err)
		}
		steps.Show(event)
		steps.Tick(event.Time)
		spans.Show(event)
	}
	stop()
	written, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{"the log": string(written), "the step lines": lines.String(), "the spans": received.Text()}
	made := Build(events, edges)
	for kind, render := range map[string]func() ([]byte, error){"JSON": made.JSON, "Markdown": made.Markdown, "HTML": made.HTML} {
		data, err := render()
		if err != nil {
			t.Fatal(err)
		}
		texts[kind] = string(data)
	}
	for where, text := range texts {
		if found := redacttest.Found(text); len(found) > 0 || !strings.Contains(text, "redacted") {
			t.Errorf("%s: %q in\n%.3000s", where, found, text)
		}
	}
}
