// Package tracing tells what a process does as spans of OpenTelemetry. An engine of Dagger gives every container variables
// for that (OTEL_EXPORTER_OTLP_…, TRACEPARENT): the spans that a program makes there belong to the trace of the call, and
// stand in Dagger's own display below the container that runs it. Without these variables nothing happens.
//
// Spans are texts that others see and keep, as logs are: none leaves the process with a secret in it that redact knows.
package tracing

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"

	"tazlab.net/castle/ci/base/version"
)

const (
	sendEvery = 100 * time.Millisecond // what Dagger's SDK does: a person sees no difference below it
	sendFor   = 5 * time.Second        // one request, while the program works on; nobody waits for it
	lastFor   = time.Second            // what is left at the end, for which the program waits
)

// key is the tracer's in a context. OpenTelemetry's own place for it is a global variable, by which every library that
// traces its requests would begin to.
type key struct{}

// Start has what is begun below the context sent to where the environment says, as part of the trace that it names. stop
// sends what is left; what cannot be sent is lost without a word, within a second.
func Start(ctx context.Context) (_ context.Context, stop func()) {
	url := endpoint(os.Getenv)
	if url == "" {
		return ctx, func() {}
	}
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(error) {})) // it would print them
	exporter := otlptrace.NewUnstarted(newClient(url))
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithResource(self(ctx)),
		sdktrace.WithRawSpanLimits(uncut()),
		sdktrace.WithSpanProcessor(processor{
			SpanProcessor: sdktrace.NewBatchSpanProcessor(exporter, sdktrace.WithBatchTimeout(sendEvery), sdktrace.WithExportTimeout(sendFor)),
			live:          os.Getenv("OTEL_EXPORTER_OTLP_TRACES_LIVE") != "",
		}))
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": os.Getenv("TRACEPARENT"), "tracestate": os.Getenv("TRACESTATE")})
	ctx = context.WithValue(ctx, key{}, provider.Tracer("tazlab.net/castle", trace.WithInstrumentationVersion(version.Castle)))
	return ctx, func() {
		ctx, cancel := context.WithTimeout(context.Background(), lastFor)
		defer cancel()
		_ = provider.Shutdown(ctx)
	}
}

// endpoint is where spans are sent to, empty for nowhere. OpenTelemetry's other protocols are not spoken.
// Source: https://opentelemetry.io/docs/specs/otel/protocol/exporter/
func endpoint(getenv func(string) string) string {
	protocol := cmp.Or(getenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"), getenv("OTEL_EXPORTER_OTLP_PROTOCOL"), "http/protobuf")
	if protocol != "http/protobuf" || strings.EqualFold(getenv("OTEL_SDK_DISABLED"), "true") {
		return ""
	}
	base := getenv("OTEL_EXPORTER_OTLP_ENDPOINT")
	if base != "" {
		base = strings.TrimSuffix(base, "/") + "/v1/traces"
	}
	return cmp.Or(getenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"), base)
}

// self says who sends: the program, unless OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES say more.
func self(ctx context.Context) *resource.Resource {
	made, _ := resource.New(ctx, resource.WithTelemetrySDK(),
		resource.WithAttributes(attribute.String("service.name", filepath.Base(os.Args[0]))), resource.WithFromEnv())
	return made
}

// uncut are the environment's limits but for the length of texts: half a secret is not recognized.
func uncut() sdktrace.SpanLimits {
	limits := sdktrace.NewSpanLimits()
	limits.AttributeValueLengthLimit = -1
	return limits
}

// Begin begins a span below that of the context; End must end it. Where nothing is traced the span does nothing.
func Begin(ctx context.Context, name string, options ...trace.SpanStartOption) (context.Context, trace.Span) {
	tracer, traced := ctx.Value(key{}).(trace.Tracer)
	if !traced {
		return ctx, noop.Span{}
	}
	return tracer.Start(ctx, name, options...)
}

// Reveal has Dagger show a span directly below the function that was called, instead of below the container in it, which a
// person would have to unfold. The other steps of the function are then shown only at a higher verbosity.
func Reveal() trace.SpanStartOption {
	return trace.WithAttributes(attribute.Bool("dagger.io/ui.reveal", true))
}

// End ends a span, as failed where there is an error.
func End(span trace.Span, err error, options ...trace.SpanEndOption) {
	if err == nil {
		span.SetStatus(codes.Ok, "")
	} else {
		span.SetStatus(codes.Error, err.Error())
	}
	span.End(options...)
}
