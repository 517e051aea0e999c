package timeline

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// maxEvent is how long a line may be, in bytes: what is written at once does not mix with other processes' lines.
const maxEvent = 4 << 10

// Log appends to a run's event log; several processes may do so at once.
type Log struct {
	file *os.File

	mutex    sync.Mutex
	watchers []func(Event)
}

// Watch shows each event that this process appends from now on, when it is written. see is called by whoever appends, and does not wait.
func (l *Log) Watch(see func(Event)) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.watchers = append(l.watchers, see)
}

// Open opens a log for appending and makes it where it is not there yet.
func Open(name string) (*Log, error) {
	file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, fmt.Errorf("open the event log: %w", err)
	}
	return &Log{file: file}, nil
}

// Append writes an event in one piece, with the time of now where it has none. Texts too long for a line are cut.
func (l *Log) Append(event Event) error {
	if event.Time.IsZero() {
		event.Time = time.Now().UTC()
	}
	event = redacted(event)
	line, err := json.Marshal(event)
	for err == nil && len(line) >= maxEvent {
		cutLongest(&event)
		line, err = json.Marshal(event)
	}
	if err != nil {
		return fmt.Errorf("write an event: %w", err)
	}
	if _, err := l.file.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("write an event: %w", err)
	}
	l.mutex.Lock()
	watchers := slices.Clone(l.watchers)
	l.mutex.Unlock()
	for _, see := range watchers {
		see(event)
	}
	return nil
}

// cutLongest takes a quarter off the longest text: how long it will be as JSON is known only then.
func cutLongest(event *Event) {
	const mark = " […]"
	longest := &event.Cause
	for _, text := range []*string{&event.Next, &event.Name, &event.Layer, &event.Cluster} {
		if len(*text) > len(*longest) {
			longest = text
		}
	}
	text := strings.TrimSuffix(*longest, mark)
	end := len(text) * 3 / 4
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	*longest = text[:end] + mark
}

// Close closes the log.
func (l *Log) Close() error { return l.file.Close() }
