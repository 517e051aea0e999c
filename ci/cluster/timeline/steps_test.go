package timeline

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/base/tail"
)

// replay shows a log's events at their own times, with the ticks that come between them in a real run.
func replay(t *testing.T, sample string) string {
	t.Helper()
	events, err := Read(filepath.Join("testdata", sample+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	steps := NewSteps(&out)
	now := events[0].Time
	for _, event := range events {
		for ; now.Before(event.Time); now = now.Add(tail.Every) {
			steps.Tick(now)
		}
		steps.Show(event)
	}
	if steps.Err() != nil {
		t.Fatal(steps.Err())
	}
	return out.String()
}

func TestARunIsToldInStepLines(t *testing.T) {
	for _, sample := range samples {
		golden(t, sample.name+".steps", []byte(replay(t, sample.name)))
	}
}

func TestAWaitIsToldWhenItChangesOrEveryFifteenSeconds(t *testing.T) {
	log := story{t: t}
	log.add(0, Event{Kind: KindGate, Layer: "platform", Name: "etcd quorum", Phase: PhaseStart})
	log.add(0.2, Event{Kind: KindGate, Layer: "platform", Name: "etcd quorum", Phase: PhaseWaiting, Cause: "1 of 3 members healthy"})
	log.add(4, Event{Kind: KindGate, Layer: "platform", Name: "etcd quorum", Phase: PhaseWaiting, Cause: "2 of 3 members healthy"})
	log.add(5, Event{Kind: KindGate, Layer: "platform", Name: "etcd quorum", Phase: PhaseWaiting, Cause: "2 of 3 members healthy"})
	log.add(40, Event{Kind: KindGate, Layer: "platform", Name: "etcd quorum", Phase: PhaseEnd, Result: ResultOK})
	var out bytes.Buffer
	steps := NewSteps(&out)
	now := dawn
	for _, event := range log.events {
		for ; now.Before(event.Time); now = now.Add(tail.Every) {
			steps.Tick(now)
		}
		steps.Show(event)
	}
	want := `    1.0s  platform      gate etcd quorum: waiting, 1 of 3 members healthy (1.0 s)
    4.0s  platform      gate etcd quorum: waiting, 2 of 3 members healthy (4.0 s)
   19.0s  platform      gate etcd quorum: waiting, 2 of 3 members healthy (19 s)
   34.0s  platform      gate etcd quorum: waiting, 2 of 3 members healthy (34 s)
   40.0s  platform      gate etcd quorum: ok in 40 s
`
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

func TestACauseIsToldOnce(t *testing.T) {
	text := replay(t, "failed")
	_, failed, found := strings.Cut(text, "failed after 5 m 00 s")
	if !found || strings.Count(failed, "ImagePullBackOff: Back-off pulling image") != 1 || !strings.Contains(failed, "create        failed after 7 m 34 s\n") {
		t.Errorf("got\n%s", text)
	}
	if !strings.Contains(text, "next: to go on where it stopped: dagger call create --cluster sandbox") {
		t.Errorf("how to go on is missing in\n%s", text)
	}
}

func TestALayerThatIsBegunTwiceStartsOnce(t *testing.T) {
	var out bytes.Buffer
	steps := NewSteps(&out)
	for range 2 {
		steps.Show(Event{Time: dawn, Kind: KindLayer, Layer: "secrets", Phase: PhaseStart})
	}
	if strings.Count(out.String(), "starts") != 1 {
		t.Errorf("got\n%s", out.String())
	}
}

func TestFollowTellsWhatWasWrittenBeforeTheEnd(t *testing.T) {
	name := filepath.Join(t.TempDir(), "events.jsonl")
	log, err := Open(name)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var out bytes.Buffer
	done := make(chan error, 1)
	go func() { done <- Follow(ctx, name, &out) }()
	for _, phase := range []string{PhaseStart, PhaseEnd} {
		if err := log.Append(Event{Kind: KindRun, Cluster: "sandbox", Name: "create", Phase: phase, Result: map[string]string{PhaseEnd: ResultOK}[phase]}); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	select {
	case err := <-done:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("Follow did not end")
	}
	if text := out.String(); !strings.Contains(text, "create        starts on cluster sandbox") || !strings.Contains(text, "create        ok in 0.") {
		t.Errorf("got\n%s", text)
	}
}

func TestFollowReportsAWriterThatFails(t *testing.T) {
	name := filepath.Join("testdata", "homelab.jsonl")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if err := Follow(ctx, name, closedFile(t)); !errors.Is(err, os.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func closedFile(t *testing.T) *os.File {
	t.Helper()
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTimesAreWrittenForAPerson(t *testing.T) {
	for d, want := range map[time.Duration][2]string{
		0:                                {"0.0 s", "0.0s"},
		340 * time.Millisecond:           {"0.3 s", "0.3s"},
		9960 * time.Millisecond:          {"10 s", "10.0s"},
		59600 * time.Millisecond:         {"1 m 00 s", "59.6s"},
		59960 * time.Millisecond:         {"1 m 00 s", "1m00.0s"},
		113400 * time.Millisecond:        {"1 m 53 s", "1m53.4s"},
		8*time.Minute + 20*time.Second:   {"8 m 20 s", "8m20.0s"},
		3*time.Hour + 4*time.Minute:      {"3 h 04 m", "184m00.0s"},
		-time.Second:                     {"0.0 s", ""},
		time.Hour - 300*time.Millisecond: {"1 h 00 m", "59m59.7s"},
	} {
		if got := short(d); got != want[0] {
			t.Errorf("short(%s) is %s, want %s", d, got, want[0])
		}
		if got := precise(d); want[1] != "" && got != want[1] {
			t.Errorf("precise(%s) is %s, want %s", d, got, want[1])
		}
	}
}
