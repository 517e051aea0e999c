package timeline

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"tazlab.net/castle/ci/base/tail"
)

const (
	quietFor     = time.Second      // a gate that opens sooner gets one line, when it opened
	blindFor     = 3 * time.Second  // likewise, while nothing was seen that could be told
	changesEvery = 2 * time.Second  // how often at most a wait's line follows what it sees
	repeatEvery  = 15 * time.Second // how often a wait is told again when nothing changes
)

// Follow prints step lines of a log and makes its spans until ctx ends, and then those of what was written until then. Its
// errors are the log's and the writer's; that ctx ended is none.
func Follow(ctx context.Context, name string, out io.Writer) error {
	reader := NewReader(name)
	defer func() { _ = reader.Close() }()
	steps, spans := NewSteps(out), NewSpans(ctx)
	defer func() { spans.Close(time.Now()) }()
	ticker := time.NewTicker(tail.Every)
	defer ticker.Stop()
	for {
		over := ctx.Err() != nil
		events, err := reader.Poll()
		for _, event := range events {
			steps.Show(event)
			spans.Show(event)
		}
		steps.Tick(time.Now())
		if err = errors.Join(err, steps.Err()); err != nil || over {
			return err
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// Steps prints a line when a layer or a gate starts and ends, and a line about what is being waited for, when that changes
// and every 15 seconds. The lines are plain text, for terminals and for logs.
type Steps struct {
	out io.Writer
	err error

	began  time.Time
	open   map[key]time.Time // what started and has not ended
	waits  []*wait           // in the order of their starts
	told   time.Time         // when a wait was last told
	causes map[string]bool   // failures that were told: layer and run fail for the same cause as their gate
}

type key struct{ kind, layer, name string }

func keyOf(e Event) key {
	switch e.Kind {
	case KindRun:
		return key{kind: e.Kind} // there is one, and its end may name the layer that failed
	case KindLayer:
		return key{kind: e.Kind, layer: e.Layer}
	default:
		return key{e.Kind, e.Layer, e.Name}
	}
}

// wait is a gate or step that has not ended.
type wait struct {
	key
	since   time.Time
	seen    string
	shown   string // what was seen when it was last told
	toldAt  time.Time
	started bool // it was told that it waits
}

// NewSteps prints to out.
func NewSteps(out io.Writer) *Steps {
	return &Steps{out: out, open: map[key]time.Time{}, causes: map[string]bool{}}
}

// Err is the first error of the writer.
func (s *Steps) Err() error { return s.err }

// Show prints what an event says, if it says something new.
func (s *Steps) Show(event Event) {
	event = redacted(event)
	if s.began.IsZero() {
		s.began = event.Time
	}
	k := keyOf(event)
	switch event.Phase {
	case PhaseStart:
		if _, twice := s.open[k]; twice {
			return // a layer may be begun by the run and again by its own hook
		}
		s.open[k] = event.Time
		switch event.Kind {
		case KindRun:
			s.line(event.Time, event.Name, "starts"+prefixed(" on cluster ", event.Cluster))
		case KindLayer:
			s.line(event.Time, event.Layer, "starts")
		default:
			s.waits = append(s.waits, &wait{key: k, since: event.Time, toldAt: event.Time})
		}
	case PhaseWaiting:
		w := s.wait(k)
		if w == nil {
			w = &wait{key: k, since: event.Time, toldAt: event.Time}
			s.waits = append(s.waits, w)
		}
		w.seen = oneLine(event.Cause)
		s.tell(w, event.Time)
	case PhaseEnd:
		s.end(event, k)
	}
}

// Tick prints what is due at that time: a wait that has become worth a line, or one that nothing was heard of for long.
func (s *Steps) Tick(now time.Time) {
	for _, w := range s.waits {
		s.tell(w, now)
	}
	if len(s.waits) == 0 || now.Sub(s.told) < repeatEvery {
		return
	}
	var told []*wait
	for _, w := range s.waits {
		if w.started {
			told = append(told, w)
		}
	}
	switch len(told) {
	case 0:
		return
	case 1:
		s.waiting(told[0], now)
	default:
		for _, w := range told {
			w.shown, w.toldAt = w.seen, now
		}
		s.told = now
		longest := told[0] // they stand in the order of their starts
		s.line(now, "waiting", fmt.Sprintf("for %d, longest for %s %s (%s)", len(told), longest.layer, longest.name, short(now.Sub(longest.since))))
	}
}

func (s *Steps) wait(k key) *wait {
	for _, w := range s.waits {
		if w.key == k {
			return w
		}
	}
	return nil
}

// tell prints a wait's line when it is new or sees something else than when it was last told.
func (s *Steps) tell(w *wait, now time.Time) {
	switch {
	case !w.started && (now.Sub(w.since) >= blindFor || w.seen != "" && now.Sub(w.since) >= quietFor):
		w.started = true
	case w.started && w.seen != w.shown && now.Sub(w.toldAt) >= changesEvery:
	default:
		return
	}
	s.waiting(w, now)
}

func (s *Steps) waiting(w *wait, now time.Time) {
	w.shown, w.toldAt, s.told = w.seen, now, now
	word := "waiting"
	if w.kind == KindStep {
		word = "runs"
	}
	s.line(now, w.layer, fmt.Sprintf("%s %s: %s%s (%s)", w.kind, w.name, word, prefixed(", ", w.seen), short(now.Sub(w.since))))
}

func (s *Steps) end(event Event, k key) {
	since, started := s.open[k]
	delete(s.open, k)
	for i, w := range s.waits {
		if w.key == k {
			since, started = w.since, true
			s.waits = append(s.waits[:i:i], s.waits[i+1:]...)
			break
		}
	}
	what, who := "", event.Layer
	switch event.Kind {
	case KindRun:
		who = event.Name
	case KindLayer:
	default:
		what = event.Kind + " " + event.Name + ": "
	}
	text := what + event.Result
	if started {
		text += map[bool]string{true: " after ", false: " in "}[event.Result == ResultFailed] + short(event.Time.Sub(since))
	}
	cause := ""
	if event.Result != ResultOK && event.Result != ResultUnchanged && !s.causes[event.Cause] {
		cause = event.Cause
		s.causes[event.Cause] = true
	}
	lines := strings.Split(strings.TrimSpace(cause), "\n")
	s.line(event.Time, who, text+prefixed(": ", lines[0]))
	for _, line := range lines[1:] {
		s.more(line)
	}
	if event.Next != "" && (event.Result == ResultFailed || event.Result == ResultUnproven) {
		s.more("next: " + event.Next)
	}
}

const margin = 10 // columns of the time, before the layer's name

func (s *Steps) line(at time.Time, who, text string) {
	s.print(fmt.Sprintf("%8s  %-12s  %s", precise(max(at.Sub(s.began), 0)), who, text))
}

// more continues the line before.
func (s *Steps) more(text string) {
	s.print(strings.Repeat(" ", margin+12+2) + strings.TrimRight(text, " \t\r"))
}

func (s *Steps) print(line string) {
	if s.err != nil {
		return
	}
	_, s.err = io.WriteString(s.out, strings.TrimRight(line, " ")+"\n")
}

func prefixed(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}

// oneLine makes a text fit for a line of its own: without line breaks, at most 160 characters.
func oneLine(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	const most = 160
	if utf8.RuneCountInString(text) > most {
		text = string([]rune(text)[:most-1]) + "…"
	}
	return text
}
