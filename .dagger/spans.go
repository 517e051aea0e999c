package main

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// shown begins a span: what is asked of the engine with its context stands below
// it in Dagger's display. With alone, it stands directly below the function that
// was called, whose other calls are then left out at the usual verbosity.
//
// Source: engine v0.19.10, dagql/dagui/spans.go, RevealedSpans.
func shown(ctx context.Context, name string, alone bool) (_ context.Context, end func(error)) {
	var options []trace.SpanStartOption
	if alone {
		options = append(options, trace.WithAttributes(attribute.Bool("dagger.io/ui.reveal", true)))
	}
	ctx, span := Tracer().Start(ctx, name, options...)
	return ctx, func(err error) {
		if err != nil {
			span.SetStatus(codes.Error, plain(err).Error())
		}
		span.End()
	}
}
