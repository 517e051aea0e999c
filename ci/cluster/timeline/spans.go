package timeline

import (
	"context"
	"errors"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"tazlab.net/castle/ci/base/tracing"
)

// Spans makes spans of events, as Steps makes lines: a run is one, its layers are below it, gates and steps below their
// layer. They are made by whoever follows the log, and not by the hooks that write it: a layer is begun by one process and
// ended by another, and no span can be.
type Spans struct {
	ctx  context.Context
	open map[key]*traced
}

// traced is a span that has not ended.
type traced struct {
	trace.Span
	below  context.Context // for the spans below it
	failed *Event          // the end of a layer whose cause is still to come
}

// NewSpans makes spans below that of the context.
func NewSpans(ctx context.Context) *Spans { return &Spans{ctx: ctx, open: map[key]*traced{}} }

// Show begins or ends a span, or notes what is seen while it lasts.
func (s *Spans) Show(event Event) {
	k := keyOf(event)
	span := s.open[k]
	if event.Phase == PhaseEnd {
		s.ended(k, span, event)
		return
	}
	if span != nil && span.failed != nil { // the layer is tried again
		s.end(k, *span.failed)
		span = nil
	}
	if span == nil {
		span = s.begin(event)
		s.open[k] = span
	}
	if event.Phase == PhaseWaiting {
		span.SetAttributes(attribute.String("castle.seen", event.Cause))
	}
}

func (s *Spans) begin(event Event) *traced {
	name, options := event.Kind+" "+event.Name, []trace.SpanStartOption{trace.WithTimestamp(event.Time)}
	list := told("castle.cluster", event.Cluster, "castle.layer", event.Layer)
	switch event.Kind {
	case KindRun:
		name = event.Name + prefixed(" ", event.Cluster)
	case KindLayer:
		name = event.Kind + " " + event.Layer
		options = append(options, tracing.Reveal())
	default:
		list = append(list, told("castle."+event.Kind, event.Name)...)
	}
	below, span := tracing.Begin(s.above(event), name, append(options, trace.WithAttributes(list...))...)
	return &traced{Span: span, below: below}
}

// above is what an event's span belongs to: of what goes on, the layer, else the run.
func (s *Spans) above(event Event) context.Context {
	for _, k := range []key{{kind: KindLayer, layer: event.Layer}, {kind: KindRun}} {
		if span := s.open[k]; span != nil {
			return span.below
		}
	}
	return s.ctx
}

// ended ends a span, nil where none has begun. A hook that notes that its layer failed does not know why: the run notes it
// once more when it does, so the span waits for that.
func (s *Spans) ended(k key, span *traced, event Event) {
	switch {
	case span == nil:
	case event.Kind == KindLayer && event.Result == ResultFailed && event.Cause == "":
		span.failed = &event
	case span.failed != nil && event.Result != ResultFailed: // a failure is never overwritten by a success
	default:
		s.end(k, event)
	}
}

// Close ends what has not ended: as failed where that is known, else as interrupted.
func (s *Spans) Close(at time.Time) {
	for k, span := range s.open {
		end := Event{Time: at, Result: ResultInterrupted}
		if span.failed != nil {
			end = *span.failed
		}
		s.end(k, end)
	}
}

func (s *Spans) end(k key, event Event) {
	span := s.open[k]
	delete(s.open, k)
	span.SetAttributes(told("castle.result", event.Result, "castle.next", event.Next)...)
	var err error
	if event.Result == ResultFailed || event.Result == ResultInterrupted {
		err = errors.New(orText(event.Cause, event.Result))
	}
	tracing.End(span, err, trace.WithTimestamp(event.Time))
}

// told are attributes by name and value; those without a value are left out.
func told(pairs ...string) []attribute.KeyValue {
	var list []attribute.KeyValue
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			list = append(list, attribute.String(pairs[i], pairs[i+1]))
		}
	}
	return list
}
