package timeline

import (
	"slices"
	"strings"
	"time"
)

// commandCreate is the command that resumes what it began.
const commandCreate = "create"

// Timeline is a run, made from its events.
type Timeline struct {
	Cluster  string    `json:"cluster"`
	Command  string    `json:"command"`
	Started  time.Time `json:"started"`
	Total    Seconds   `json:"total"`
	Result   string    `json:"result"`
	Failure  *Failure  `json:"failure,omitempty"`
	Critical []Link    `json:"criticalPath"`
	Scaled   bool      `json:"scaled,omitempty"` // the sandbox's delays were not a homelab's
	Layers   []Layer   `json:"layers"`
}

// Failure is why a run did not get through.
type Failure struct {
	Layer string `json:"layer,omitempty"`
	Gate  string `json:"gate,omitempty"`
	Cause string `json:"cause"`
	Look  string `json:"look,omitempty"` // what to look at
	Next  string `json:"next,omitempty"` // the command that resumes
}

// Span is something that has a start and an end within a run.
type Span struct {
	Start  Seconds `json:"start"` // since the run's start
	Took   Seconds `json:"took"`
	Result string  `json:"result"`
	Cause  string  `json:"cause,omitempty"`
	Next   string  `json:"next,omitempty"`
}

// End is when it ended, since the run's start.
func (s Span) End() Seconds { return s.Start + s.Took }

// Layer is one layer of the run.
type Layer struct {
	Name string `json:"name"`
	Span
	Needs    []string `json:"needs"`
	Critical bool     `json:"critical"`
	Gates    []Gate   `json:"gates"`
}

// Gate is a wait, or another step, within a layer.
type Gate struct {
	Name string `json:"name"`
	Kind string `json:"kind"`
	Span
	LastSeen string `json:"lastSeen,omitempty"` // what it saw while it waited
}

// Link is one layer of the critical path.
type Link struct {
	Layer   string  `json:"layer"`
	Wait    Seconds `json:"wait"`              // between the end of the layer before it, or the run's start, and its own start
	Took    Seconds `json:"took"`              // from its start; where it waited for the layer before it on its way, from that one's end
	Longest string  `json:"longest,omitempty"` // the gate that took most of its time
	Gate    Seconds `json:"longestTook,omitempty"`
}

// Build makes the time line of a run. The edges name the layers that each layer needs. What started and did not end, as in
// a run that was killed, lasts until the last event and is called interrupted.
func Build(events []Event, edges map[string][]string, list ...Option) Timeline {
	b := builder{scaled: chosen(list).scaled, open: map[key]*span{}, layers: map[string]*span{}}
	events = slices.Clone(events)
	slices.SortStableFunc(events, func(a, b Event) int { return a.Time.Compare(b.Time) })
	for _, event := range events {
		b.add(redacted(event))
	}
	return b.timeline(edges)
}

// span is a part of the run while its events are read.
type span struct {
	key
	start, end  time.Time
	result      string
	cause, next string
	seen        string
	children    []*span
}

type builder struct {
	scaled      bool
	first, last time.Time
	cluster     string
	run         *span
	layers      map[string]*span
	order       []*span
	open        map[key]*span
}

func (b *builder) add(e Event) {
	if b.first.IsZero() {
		b.first = e.Time
	}
	b.last = e.Time
	if b.cluster == "" {
		b.cluster = e.Cluster
	}
	s := b.span(e)
	if s == nil {
		return
	}
	switch e.Phase {
	case PhaseStart:
		// A layer that starts again was tried again; it counts from its first start.
		s.end, s.result, s.cause, s.next = time.Time{}, "", "", ""
	case PhaseWaiting:
		s.seen = e.Cause
	case PhaseEnd:
		// Hooks and the run's own report may both tell that a layer ended: a failure is never overwritten by a success.
		if s.result == ResultFailed && e.Result != ResultFailed {
			return
		}
		s.end, s.result = e.Time, e.Result
		if e.Cause != "" || e.Result != ResultFailed {
			s.cause = e.Cause
		}
		if e.Next != "" {
			s.next = e.Next
		}
		delete(b.open, s.key)
	}
}

// span finds what an event speaks of, and makes it where the event is the first to.
func (b *builder) span(e Event) *span {
	k := keyOf(e)
	switch e.Kind {
	case KindRun:
		if b.run == nil {
			b.run = &span{key: key{kind: KindRun, name: e.Name}, start: e.Time}
		}
		return b.run
	case KindLayer:
		return b.layer(e)
	case KindGate, KindStep:
		if s := b.open[k]; s != nil {
			return s
		}
		layer := b.layer(e)
		if e.Phase == PhaseEnd {
			for _, s := range slices.Backward(layer.children) {
				if s.key == k {
					return s
				}
			}
		}
		s := &span{key: k, start: e.Time}
		layer.children = append(layer.children, s)
		b.open[k] = s
		return s
	}
	return nil
}

func (b *builder) layer(e Event) *span {
	layer := b.layers[e.Layer]
	if layer == nil {
		layer = &span{key: key{kind: KindLayer, layer: e.Layer}, start: e.Time}
		b.layers[e.Layer] = layer
		b.order = append(b.order, layer)
	}
	return layer
}

func (b *builder) timeline(edges map[string][]string) Timeline {
	t := Timeline{Cluster: b.cluster, Started: b.first, Result: ResultInterrupted, Layers: []Layer{}, Critical: []Link{}}
	ended := b.last
	if b.run != nil {
		t.Command, t.Started = b.run.name, b.run.start
		if b.run.result != "" {
			t.Result, ended = b.run.result, b.run.end
		}
	}
	t.Total = Seconds(max(ended.Sub(t.Started), 0))
	for _, s := range b.order {
		layer := Layer{Name: s.layer, Span: b.finish(s, t.Started, ended), Needs: slices.Clone(edges[s.layer]), Gates: []Gate{}}
		if layer.Needs == nil {
			layer.Needs = []string{}
		}
		for _, child := range s.children {
			gate := Gate{Name: child.name, Kind: child.kind, Span: b.finish(child, t.Started, ended), LastSeen: child.seen}
			layer.Gates = append(layer.Gates, gate)
		}
		t.Layers = append(t.Layers, layer)
	}
	t.markCritical(edges)
	t.Failure = b.failure(t)
	t.Scaled = b.scaled
	return t
}

func (b *builder) finish(s *span, began, ended time.Time) Span {
	if s.result == "" {
		s.result, s.end = ResultInterrupted, ended
	}
	if s.end.Before(s.start) {
		s.end = s.start
	}
	return Span{Seconds(max(s.start.Sub(began), 0)), Seconds(s.end.Sub(s.start)), s.result, s.cause, s.next}
}

// failure is what a person wants to know first: the run's own word, completed by the first layer that failed and its gate.
func (b *builder) failure(t Timeline) *Failure {
	if t.Result == ResultOK || t.Result == ResultUnchanged {
		return nil
	}
	f := &Failure{}
	var first *Layer
	for i, layer := range t.Layers {
		if layer.Result == ResultFailed && (first == nil || layer.End() < first.End()) {
			first = &t.Layers[i]
		}
	}
	if first != nil {
		f.Layer, f.Cause, f.Look = first.Name, first.Cause, first.Next
		for _, gate := range first.Gates {
			if gate.Result == ResultFailed {
				f.Gate = gate.Name
				f.Look = gate.Next
				if f.Cause == "" {
					f.Cause = gate.Cause
				}
			}
		}
	}
	if b.run != nil && b.run.result != "" {
		f.Next = b.run.next
		if f.Cause == "" {
			f.Cause = b.run.cause
		}
	}
	if f.Cause == "" && t.Result == ResultInterrupted {
		f.Cause = "the log has no end: the run was interrupted, or is still on"
		if waits := t.unfinished(); len(waits) > 0 {
			f.Cause += "; its last event was in\n  " + strings.Join(waits, "\n  ")
		}
		if t.Command == commandCreate && t.Cluster != "" {
			f.Next = "to go on where it stopped: " + daggerCall + "create --cluster " + t.Cluster
		}
	}
	return f
}

// unfinished names what had not ended: layers, with their gates.
func (t Timeline) unfinished() []string {
	var list []string
	for _, layer := range t.Layers {
		if layer.Result != ResultInterrupted {
			continue
		}
		var gates []string
		for _, gate := range layer.Gates {
			if gate.Result == ResultInterrupted {
				gates = append(gates, layer.Name+", "+gate.Kind+" "+gate.Name+prefixed(": ", gate.LastSeen))
			}
		}
		if len(gates) == 0 {
			gates = []string{layer.Name}
		}
		list = append(list, gates...)
	}
	return list
}

// markCritical walks back from the layer that ended last: what bounded each layer, at its start or on its way, is of the layers
// that it needs the one that ended last. A needed layer that is not in this run passes on to what it needs itself.
func (t *Timeline) markCritical(edges map[string][]string) {
	index := map[string]int{}
	for i, layer := range t.Layers {
		index[layer.Name] = i
	}
	ran := func(i int) bool { return t.Layers[i].Result != ResultSkipped }
	at := -1
	for i := range t.Layers {
		if ran(i) && (at < 0 || t.Layers[i].End() > t.Layers[at].End()) {
			at = i
		}
	}
	visited := map[string]bool{}
	for at >= 0 {
		layer := &t.Layers[at]
		layer.Critical = true
		visited[layer.Name] = true
		before := -1
		queue := slices.Clone(edges[layer.Name])
		for len(queue) > 0 {
			name := queue[0]
			queue = queue[1:]
			if visited[name] {
				continue
			}
			i, there := index[name]
			switch {
			case !there || !ran(i):
				visited[name] = true
				queue = append(queue, edges[name]...)
			case before < 0 || t.Layers[i].End() > t.Layers[before].End():
				before = i
			}
		}
		var since Seconds
		if before >= 0 {
			since = min(t.Layers[before].End(), layer.End())
		}
		link := Link{Layer: layer.Name, Wait: max(layer.Start-since, 0), Took: layer.End() - max(layer.Start, since)}
		for _, gate := range layer.Gates {
			if own := gate.End() - max(gate.Start, since); gate.Kind == KindGate && own > link.Gate {
				link.Longest, link.Gate = gate.Name, own
			}
		}
		t.Critical = append(t.Critical, link)
		at = before
	}
	slices.Reverse(t.Critical)
}
