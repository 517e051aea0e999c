package timeline

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestMain(m *testing.M) {
	if name := os.Getenv("TIMELINE_TEST_WRITE"); name != "" {
		writeMany(name)
		return
	}
	os.Exit(m.Run())
}

const eventsEach = 300

// writeMany is the work of the processes of TestSeveralProcessesWriteWholeLines.
func writeMany(name string) {
	log, err := Open(name)
	for i := 0; err == nil && i < eventsEach; i++ {
		err = log.Append(Event{Kind: KindGate, Layer: fmt.Sprint(os.Getpid()), Name: fmt.Sprint(i), Phase: PhaseWaiting, Cause: strings.Repeat("x", 1+i*13%3500)})
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func TestSeveralProcessesWriteWholeLines(t *testing.T) {
	name := filepath.Join(t.TempDir(), "events.jsonl")
	const processes = 4
	running := make([]*exec.Cmd, processes)
	for i := range running {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		running[i] = exec.CommandContext(ctx, os.Args[0])
		running[i].Env = append(os.Environ(), "TIMELINE_TEST_WRITE="+name)
		if err := running[i].Start(); err != nil {
			t.Fatal(err)
		}
	}
	for _, command := range running {
		if err := command.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(string(data), "\n"); lines != processes*eventsEach {
		t.Errorf("the log has %d lines, want %d", lines, processes*eventsEach)
	}
	events, err := Read(name)
	if err != nil {
		t.Fatal(err)
	}
	next := map[string]int{}
	for _, event := range events {
		if event.Name != fmt.Sprint(next[event.Layer]) {
			t.Fatalf("process %s: event %s comes where %d should", event.Layer, event.Name, next[event.Layer])
		}
		next[event.Layer]++
	}
	if len(events) != processes*eventsEach || len(next) != processes {
		t.Errorf("read %d events of %d processes", len(events), len(next))
	}
}

func TestALongTextIsCutToALineThatIsStillAnEvent(t *testing.T) {
	name := filepath.Join(t.TempDir(), "events.jsonl")
	log, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, event := range []Event{
		{Kind: KindGate, Phase: PhaseEnd, Result: ResultFailed, Cause: strings.Repeat("ä", 9000), Next: "look here"},
		{Kind: KindGate, Phase: PhaseEnd, Cause: strings.Repeat("\x01\"<", 3000)},
		{Kind: KindGate, Phase: PhaseEnd, Cause: "short", Next: strings.Repeat("n", 6000), Name: strings.Repeat("o", 5000)},
	} {
		if err := log.Append(event); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(data)) {
		var event Event
		if err := json.Unmarshal([]byte(line), &event); err != nil || len(line) > maxEvent || !utf8.ValidString(event.Cause) {
			t.Errorf("%v, %d bytes: %.80s", err, len(line), line)
		}
	}
	events, err := Read(name)
	if err != nil || len(events) != 3 {
		t.Fatalf("read %d events, %v", len(events), err)
	}
	if e := events[0]; e.Next != "look here" || !strings.HasSuffix(e.Cause, "ä […]") || len(e.Cause) < 2000 {
		t.Errorf("got %d bytes ending in %q, next %q", len(e.Cause), e.Cause[len(e.Cause)-10:], e.Next)
	}
	if events[2].Cause != "short" {
		t.Errorf("the short text became %q", events[2].Cause)
	}
}

func TestALineThatWasCutCostsOnlyItself(t *testing.T) {
	name := filepath.Join(t.TempDir(), "events.jsonl")
	write := func(text string) {
		t.Helper()
		file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := file.WriteString(text); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	const whole = `{"time":"2026-03-07T20:00:00Z","kind":"layer","layer":"platform","phase":"start"}`
	write(whole + "\n" + whole[:40])
	log, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Append(Event{Kind: KindLayer, Layer: "engine", Phase: PhaseStart}); err != nil {
		t.Fatal(err)
	}
	// A line may also be cut while another process already has the log open.
	write(whole[:50] + whole + "\n" + "not JSON\n\n" + `{"other":1}` + "\n" + whole[:60])
	events, err := Read(name)
	if err != nil {
		t.Fatal(err)
	}
	var layers []string
	for _, event := range events {
		layers = append(layers, event.Layer)
	}
	if strings.Join(layers, " ") != "platform engine platform" {
		t.Errorf("read the layers %q", layers)
	}
}

func TestAReaderFollowsAFileThatIsNotThereYet(t *testing.T) {
	name := filepath.Join(t.TempDir(), "events.jsonl")
	reader := NewReader(name)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	written := make(chan error, 1)
	go func() {
		time.Sleep(150 * time.Millisecond)
		log, err := Open(name)
		for i := 0; err == nil && i < 3; i++ {
			err = log.Append(Event{Kind: KindStep, Name: fmt.Sprint(i), Phase: PhaseStart})
		}
		written <- err
	}()
	for i := range 3 {
		event, err := reader.Next(ctx)
		if err != nil || event.Name != fmt.Sprint(i) {
			t.Fatalf("event %d: got %+v, %v", i, event, err)
		}
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	// What was written before the end is still given, then the end.
	log, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Append(Event{Kind: KindStep, Name: "last", Phase: PhaseEnd}); err != nil {
		t.Fatal(err)
	}
	cancel()
	if event, err := reader.Next(ctx); err != nil || event.Name != "last" {
		t.Errorf("got %+v, %v", event, err)
	}
	if _, err := reader.Next(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if err := reader.Close(); err != nil {
		t.Error(err)
	}
}

func TestAHalfWrittenLineIsReadWhenItIsWhole(t *testing.T) {
	name := filepath.Join(t.TempDir(), "events.jsonl")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	reader := NewReader(name)
	const line = `{"time":"2026-03-07T20:00:00Z","kind":"layer","layer":"platform","phase":"start"}`
	if _, err := file.WriteString(line[:30]); err != nil {
		t.Fatal(err)
	}
	if events, err := reader.Poll(); err != nil || len(events) != 0 {
		t.Fatalf("%d events, %v", len(events), err)
	}
	if _, err := file.WriteString(line[30:] + "\n"); err != nil {
		t.Fatal(err)
	}
	if events, err := reader.Poll(); err != nil || len(events) != 1 || events[0].Layer != "platform" {
		t.Fatalf("%+v, %v", events, err)
	}
}
