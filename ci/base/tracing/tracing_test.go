package tracing_test

import (
	"bytes"
	"context"
	"errors"
	"log"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/base/redact/redacttest"
	"tazlab.net/castle/ci/base/tracing"
	"tazlab.net/castle/ci/base/tracing/tracingtest"
)

// work is a span with another one below it that fails.
func work(ctx context.Context) {
	ctx, whole := tracing.Begin(ctx, "the whole", tracing.Reveal())
	_, part := tracing.Begin(ctx, "a part", trace.WithAttributes(attribute.Int("castle.attempts", 2)))
	tracing.End(part, errors.New("the hook failed"))
	tracing.End(whole, nil)
}

func TestSpansBelongToTheTraceThatTheProcessIsStartedIn(t *testing.T) {
	ctx, stop, received := tracingtest.Trace(t)
	work(ctx)
	stop()
	if tree := received.Tree(); tree != "the whole: ok\n  a part: error: the hook failed\n" {
		t.Errorf("got\n%s", tree)
	}
	if received.Attribute("the whole", "dagger.io/ui.reveal") != "true" || received.Attribute("a part", "castle.attempts") != "2" {
		t.Errorf("got\n%s", received.Text())
	}
	if !strings.Contains(received.Text(), "tracing.test") {
		t.Errorf("the program is not named in\n%s", received.Text())
	}
}

func TestWhoShowsWhatGoesOnIsToldOfASpanWhenItBegins(t *testing.T) {
	ctx, stop, received := tracingtest.Trace(t)
	ctx, span := tracing.Begin(ctx, "slow")
	received.AwaitBegun("slow")
	tracing.End(span, nil)
	stop()
	if begun, tree := received.Begun(), received.Tree(); !slices.Equal(begun, []string{"slow"}) || tree != "slow: ok\n" {
		t.Errorf("begun %q, ended\n%s", begun, tree)
	}
	_, late := tracing.Begin(ctx, "late")
	tracing.End(late, nil)
}

func TestACollectorGetsEachSpanOnce(t *testing.T) {
	received := tracingtest.New(t)
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", received.URL+"/")
	t.Setenv("TRACEPARENT", tracingtest.Variables("")["TRACEPARENT"])
	ctx, stop := tracing.Start(t.Context())
	work(ctx)
	stop()
	if begun := received.Begun(); len(begun) > 0 || strings.Count(received.Tree(), "\n") != 2 {
		t.Errorf("begun %q, ended\n%s", begun, received.Tree())
	}
}

func TestNoCanaryIsInASpan(t *testing.T) {
	leaks := redacttest.Leaks(t)
	redact.Add(redacttest.Token, redacttest.Key, redacttest.YAML)
	t.Setenv("OTEL_SPAN_ATTRIBUTE_VALUE_LENGTH_LIMIT", "20") // no redactor knows half a secret
	ctx, stop, received := tracingtest.Trace(t)
	for name, leak := range leaks {
		_, span := tracing.Begin(ctx, name+leak, trace.WithAttributes(attribute.String("castle.gate", leak)))
		span.AddEvent(leak, trace.WithAttributes(attribute.String("why", leak)))
		tracing.End(span, errors.New(leak))
	}
	stop()
	text := received.Text()
	if found := redacttest.Found(text); len(found) > 0 || strings.Count(text, redact.Mark) < 5*len(leaks) {
		t.Errorf("%q in\n%.3000s", found, text)
	}
}

func TestWithoutTheVariablesNothingHappens(t *testing.T) {
	dead := tracingtest.Variables("http://127.0.0.1:1")
	for title, variables := range map[string]map[string]string{
		"none":             {},
		"a parent only":    {"TRACEPARENT": dead["TRACEPARENT"]},
		"another protocol": {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"},
		"disabled":         {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"},
	} {
		t.Run(title, func(t *testing.T) {
			for name, value := range variables {
				t.Setenv(name, value)
			}
			ctx, stop := tracing.Start(t.Context())
			_, span := tracing.Begin(ctx, "x")
			if ctx != t.Context() || span.IsRecording() {
				t.Errorf("there is a trace: %v", span)
			}
			tracing.End(span, nil)
			stop()
		})
	}
}

// An endpoint may be gone, may answer nothing, or may answer nonsense: nothing is said of it, and the program ends.
func TestAnEndpointThatDoesNotAnswerIsNoError(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // takes connections and is never heard of again
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	for title, url := range map[string]string{"gone": "http://127.0.0.1:1", "silent": "http://" + silent.Addr().String(), "no URL": "://"} {
		t.Run(title, func(t *testing.T) {
			var said bytes.Buffer
			log.SetOutput(&said)
			defer log.SetOutput(os.Stderr)
			for name, value := range tracingtest.Variables(url) {
				t.Setenv(name, value)
			}
			ctx, stop := tracing.Start(t.Context())
			began := time.Now()
			for range 5000 { // more than wait to be sent at most
				work(ctx)
			}
			worked := time.Now()
			stop()
			if took := time.Since(worked); took > 10*time.Second {
				t.Errorf("the end took %s", took)
			}
			if took := worked.Sub(began); took > 20*time.Second {
				t.Errorf("the work took %s", took)
			}
			if said.Len() > 0 {
				t.Errorf("it said %s", &said)
			}
		})
	}
}
