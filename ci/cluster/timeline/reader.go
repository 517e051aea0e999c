package timeline

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"tazlab.net/castle/ci/base/tail"
)

// Read reads a whole log. Lines that are no events, such as one that was cut, are left out.
func Read(name string) ([]Event, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, fmt.Errorf("read the event log: %w", err)
	}
	var events []Event
	for line := range bytes.Lines(data) {
		if event, ok := parseLine(line); ok {
			events = append(events, event)
		}
	}
	return events, nil
}

// parseLine reads one line. Where a cut line and a whole one share it, the whole one, which comes last, is taken.
func parseLine(line []byte) (Event, bool) {
	var event Event
	if json.Unmarshal(line, &event) == nil && event.Kind != "" {
		return event, true
	}
	start := bytes.LastIndex(line, []byte(`{"time":`))
	if start <= 0 {
		return Event{}, false
	}
	event = Event{}
	err := json.Unmarshal(line[start:], &event)
	return event, err == nil && event.Kind != ""
}

// Reader reads a log while it is being written.
type Reader struct {
	file  *tail.File
	queue []Event
}

// NewReader reads the log of this name, which need not be there yet.
func NewReader(name string) *Reader { return &Reader{file: tail.New(name)} }

// Next waits for the next event. When ctx ends, it still gives what was written until then, and then ctx's error.
func (r *Reader) Next(ctx context.Context) (Event, error) {
	ticker := time.NewTicker(tail.Every)
	defer ticker.Stop()
	for {
		over := ctx.Err() // asked before reading: what is written before the end must still be found
		events, err := r.Poll()
		if err != nil {
			return Event{}, err
		}
		if r.queue = append(r.queue, events...); len(r.queue) > 0 {
			event := r.queue[0]
			r.queue = r.queue[1:]
			return event, nil
		}
		if over != nil {
			return Event{}, over
		}
		select {
		case <-ctx.Done():
		case <-ticker.C:
		}
	}
}

// Poll gives the events that were written since the last time.
func (r *Reader) Poll() ([]Event, error) {
	lines, err := r.file.Lines()
	if err != nil {
		return nil, fmt.Errorf("follow the event log: %w", err)
	}
	var events []Event
	for _, line := range lines {
		if event, ok := parseLine(line); ok {
			events = append(events, event)
		}
	}
	return events, nil
}

// Close closes the file.
func (r *Reader) Close() error { return r.file.Close() }
