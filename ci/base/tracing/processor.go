package tracing

import (
	"context"
	"slices"

	"go.opentelemetry.io/otel/attribute"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"tazlab.net/castle/ci/base/redact"
)

// processor passes spans on redacted: each when it has ended and, to who can show what is going on, also when it begins,
// without an end. That is how Dagger's SDK does it (LiveSpanProcessor); other collectors would count such a span twice.
type processor struct {
	sdktrace.SpanProcessor
	live bool
}

func (p processor) OnStart(_ context.Context, span sdktrace.ReadWriteSpan) {
	if p.live {
		p.SpanProcessor.OnEnd(redacted(span))
	}
}

func (p processor) OnEnd(span sdktrace.ReadOnlySpan) { p.SpanProcessor.OnEnd(redacted(span)) }

// redacted is the span as it is now, without the secrets that this process knows.
func redacted(span sdktrace.ReadOnlySpan) sdktrace.ReadOnlySpan {
	copied := tracetest.SpanStubFromReadOnlySpan(span)
	copied.Name = redact.Text(copied.Name)
	copied.Status.Description = redact.Text(copied.Status.Description)
	copied.Attributes = redactedAttributes(copied.Attributes)
	copied.Events = slices.Clone(copied.Events)
	for i := range copied.Events {
		event := &copied.Events[i]
		event.Name, event.Attributes = redact.Text(event.Name), redactedAttributes(event.Attributes)
	}
	return copied.Snapshot()
}

// redactedAttributes takes secrets out of texts. A list of texts is none of ours to make.
func redactedAttributes(list []attribute.KeyValue) []attribute.KeyValue {
	list = slices.Clone(list)
	for i, each := range list {
		if each.Value.Type() == attribute.STRING {
			list[i].Value = attribute.StringValue(redact.Text(each.Value.AsString()))
		}
	}
	return list
}
