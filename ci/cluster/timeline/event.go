// Package timeline keeps the event log of a run and makes of it what a person reads: step lines while it goes on, and at
// the end JSON, Markdown and one HTML page. It never decides what runs.
package timeline

import (
	"time"

	"tazlab.net/castle/ci/base/redact"
)

// Kinds of events.
const (
	KindRun   = "run"   // the whole run; its name is the command
	KindLayer = "layer" // one layer
	KindGate  = "gate"  // a condition of a readiness gate, within a layer
	KindStep  = "step"  // anything else within a layer that has a duration
)

// Phases of an event.
const (
	PhaseStart   = "start"
	PhaseWaiting = "waiting" // Cause is what was seen last
	PhaseEnd     = "end"
)

// Results of what ended.
const (
	ResultOK        = "ok"
	ResultFailed    = "failed"
	ResultSkipped   = "skipped"
	ResultUnchanged = "unchanged"
	ResultUnproven  = "unproven" // well as far as it was seen; Cause says what was not

	// ResultInterrupted is never logged: Build gives it to what has a start and no end.
	ResultInterrupted = "interrupted"
)

// Event is one line of the log. Texts must not hold secrets.
type Event struct {
	Time    time.Time `json:"time"`
	Kind    string    `json:"kind"`
	Cluster string    `json:"cluster,omitempty"`
	Layer   string    `json:"layer,omitempty"`
	Name    string    `json:"name,omitempty"`
	Phase   string    `json:"phase"`
	Result  string    `json:"result,omitempty"`
	Cause   string    `json:"cause,omitempty"` // why it failed, or what a wait saw last
	Next    string    `json:"next,omitempty"`  // what to look at, or the command that resumes
}

// Option changes how a time line is built.
type Option func(*options)

type options struct {
	scaled bool
}

// Scaled says that the run's delays were not those of real machines.
func Scaled() Option { return func(o *options) { o.scaled = true } }

func chosen(list []Option) options {
	var o options
	for _, option := range list {
		option(&o)
	}
	return o
}

// redacted takes out what the process knows to be secret. Whatever writes, shows or builds does so before it cuts a text.
func redacted(e Event) Event {
	for _, text := range []*string{&e.Cluster, &e.Layer, &e.Name, &e.Cause, &e.Next} {
		*text = redact.Text(*text)
	}
	return e
}
