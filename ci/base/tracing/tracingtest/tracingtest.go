// Package tracingtest receives what a test's process traces, as a collector does.
package tracingtest

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"tazlab.net/castle/ci/base/tracing"
)

// The trace and the span that a process is started in.
const (
	traceID = "4bf92f3577b34da6a3ce929d0e0e4736"
	spanID  = "00f067aa0ba902b7"
)

// Variables are those by which an engine of Dagger has a process send its spans to the base URL.
func Variables(url string) map[string]string {
	return map[string]string{
		"TRACEPARENT":                         "00-" + traceID + "-" + spanID + "-01",
		"OTEL_EXPORTER_OTLP_PROTOCOL":         "http/protobuf",
		"OTEL_EXPORTER_OTLP_ENDPOINT":         url,
		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL":  "http/protobuf",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT":  url + "/v1/traces",
		"OTEL_EXPORTER_OTLP_TRACES_LIVE":      "1",
		"OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "http/protobuf",
	}
}

// Receiver is a collector's endpoint.
type Receiver struct {
	t   *testing.T
	URL string

	mutex sync.Mutex
	begun []string
	spans []*tracepb.Span // that have ended
	all   strings.Builder // all that was received, as text
}

// New starts an endpoint.
func New(t *testing.T) *Receiver {
	t.Helper()
	r := &Receiver{t: t}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	r.URL = server.URL
	return r
}

// Trace traces what a test does below the context, until stop.
func Trace(t *testing.T) (_ context.Context, stop func(), _ *Receiver) {
	t.Helper()
	r := New(t)
	for name, value := range Variables(r.URL) {
		t.Setenv(name, value)
	}
	ctx, stop := tracing.Start(t.Context())
	return ctx, stop, r
}

// ServeHTTP takes spans as Dagger's engine does.
func (r *Receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	var sent collector.ExportTraceServiceRequest
	if err == nil {
		err = proto.Unmarshal(body, &sent)
	}
	if err != nil || request.Method != http.MethodPost || request.URL.Path != "/v1/traces" || request.Header.Get("Content-Type") != "application/x-protobuf" {
		r.t.Errorf("%s %s as %q: %v", request.Method, request.URL, request.Header.Get("Content-Type"), err)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	fmt.Fprintln(&r.all, prototext.Format(&sent))
	for _, resource := range sent.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				if span.EndTimeUnixNano == 0 {
					r.begun = append(r.begun, span.Name)
				} else {
					r.spans = append(r.spans, span)
				}
			}
		}
	}
	w.WriteHeader(http.StatusCreated)
}

// Text is all that was received.
func (r *Receiver) Text() string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.all.String()
}

// Begun are the names of the spans that were shown when they began.
func (r *Receiver) Begun() []string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.Clone(r.begun)
}

// AwaitBegun waits until a span of this name is shown while it goes on.
func (r *Receiver) AwaitBegun(name string) {
	r.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !slices.Contains(r.Begun(), name); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			r.t.Fatalf("%s goes on, and its span is not shown: %q", name, r.Begun())
		}
	}
}

// Named is the span of this name that has ended.
func (r *Receiver) Named(name string) *tracepb.Span {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	at := slices.IndexFunc(r.spans, func(span *tracepb.Span) bool { return span.Name == name })
	if at < 0 {
		r.t.Fatalf("no span %q has ended", name)
	}
	return r.spans[at]
}

// Attribute is the value of a span's attribute, empty where it has none.
func (r *Receiver) Attribute(span, name string) string {
	for _, attribute := range r.Named(span).Attributes {
		if attribute.Key != name {
			continue
		}
		switch value := attribute.Value.Value.(type) {
		case *commonpb.AnyValue_StringValue:
			return value.StringValue
		case *commonpb.AnyValue_IntValue:
			return strconv.FormatInt(value.IntValue, 10)
		case *commonpb.AnyValue_BoolValue:
			return strconv.FormatBool(value.BoolValue)
		}
	}
	return ""
}

// Tree is a line for each span that has ended, "name: ok" or "name: error: why", in the order of their starts, each below its
// parent and two spaces further in. The first have what the process was started in as parent.
func (r *Receiver) Tree() string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	below := map[string][]*tracepb.Span{}
	for _, span := range r.spans {
		if trace := hex.EncodeToString(span.TraceId); trace != traceID {
			r.t.Errorf("%s is in the trace %s", span.Name, trace)
		}
		parent := hex.EncodeToString(span.ParentSpanId)
		below[parent] = append(below[parent], span)
	}
	var tree strings.Builder
	told := 0
	var tell func(parent, indent string)
	tell = func(parent, indent string) {
		slices.SortFunc(below[parent], func(a, b *tracepb.Span) int {
			return cmp.Or(cmp.Compare(a.StartTimeUnixNano, b.StartTimeUnixNano), strings.Compare(a.Name, b.Name))
		})
		for _, span := range below[parent] {
			told++
			status := map[tracepb.Status_StatusCode]string{tracepb.Status_STATUS_CODE_OK: "ok", tracepb.Status_STATUS_CODE_ERROR: "error: "}[span.GetStatus().GetCode()]
			fmt.Fprintf(&tree, "%s%s: %s%s\n", indent, span.Name, status, span.GetStatus().GetMessage())
			tell(hex.EncodeToString(span.SpanId), indent+"  ")
		}
	}
	tell(spanID, "")
	if told < len(r.spans) {
		r.t.Errorf("%d of %d spans have a parent that nobody knows", len(r.spans)-told, len(r.spans))
	}
	return tree.String()
}
