package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"tazlab.net/castle/ci/publish/report"
)

// emptyModule is a module of one function that returns a word. What a call of it takes is Dagger's own.
const emptyModule = `package main

type Empty struct{}

// Word is one word.
func (m *Empty) Word() string { return "word" }
`

// empty calls the empty module; the first call in a workshop makes it.
func (w *workshop) empty(ctx context.Context) (time.Duration, error) {
	module := filepath.Join(w.dir, "empty")
	if _, err := os.Stat(module); errors.Is(err, os.ErrNotExist) {
		own, err := os.ReadFile(filepath.Join(w.root, "dagger.json"))
		if err != nil {
			return 0, err
		}
		settings := strings.Replace(string(own), `"castle"`, `"empty"`, 1)
		if err := errors.Join(
			os.MkdirAll(filepath.Join(module, ".dagger"), 0o755),
			os.WriteFile(filepath.Join(module, "dagger.json"), []byte(settings), 0o644),
			os.WriteFile(filepath.Join(module, ".dagger", "main.go"), []byte(emptyModule), 0o644),
			w.run(ctx, module, nil, "dagger", "call", "word"), // compiles it
		); err != nil {
			return 0, err
		}
	}
	start := time.Now()
	err := w.run(ctx, module, nil, "dagger", "call", "word")
	return time.Since(start), err
}

// spans collects what the dagger command traces: its own spans and the engine's.
type spans struct {
	mu    sync.Mutex
	ended map[string]*tracepb.Span // by name, the first one
}

// ServeHTTP takes spans by OTLP over HTTP, and lets metrics and logs go.
func (s *spans) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	if err != nil || request.URL.Path != "/v1/traces" {
		return
	}
	var sent tracepb.TracesData
	if err := proto.Unmarshal(body, &sent); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, resource := range sent.ResourceSpans {
		for _, scope := range resource.ScopeSpans {
			for _, span := range scope.Spans {
				name, _, _ := strings.Cut(span.Name, ":") // load module: PATH
				if _, known := s.ended[name]; !known && span.EndTimeUnixNano > span.StartTimeUnixNano {
					s.ended[name] = span
				}
			}
		}
	}
}

// took is when a span began and ended.
func (s *spans) took(name string) (from, to time.Time, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	span, known := s.ended[name]
	if !known {
		return from, to, fmt.Errorf("dagger traced no span %q: its names are of another version than split.go knows", name)
	}
	return time.Unix(0, int64(span.StartTimeUnixNano)), time.Unix(0, int64(span.EndTimeUnixNano)), nil
}

// The parts of a call outside the function's own steps, and inside of it between these. Source of the spans' names: engine
// v0.19.10, cmd/dagger/module_inspect.go and call.go.
const (
	partLoad    = "load the module and its types"
	partUpload  = "upload the site"
	partSources = "castle's source, the clusters' repository"
	partStart   = "start and end the function"
	partBetween = "settings, the containers' start"
	partEnd     = "connect to the engine and leave it"
)

// split tells what a call took by its parts, which add up to it.
func (s *spans) split(took time.Duration, result report.Result) ([]report.Step, error) {
	loaded, parsing, err := s.took("load module")
	if err != nil {
		return nil, err
	}
	arguments, uploaded, err := s.took("parsing command line arguments")
	if err != nil {
		return nil, err
	}
	called, returned, err := s.took("Castle.publishBlog")
	if err != nil {
		return nil, err
	}
	parts := []report.Step{
		{Name: partLoad, Seconds: parsing.Sub(loaded).Seconds()},
		{Name: partUpload, Seconds: uploaded.Sub(arguments).Seconds()},
		{Name: partSources, Seconds: called.Sub(uploaded).Seconds()},
		{Name: partStart, Seconds: returned.Sub(called).Seconds() - result.Seconds},
	}
	between := result.Seconds
	for _, step := range result.Steps {
		parts = append(parts, step)
		between -= step.Seconds
	}
	parts = append(parts, report.Step{Name: partBetween, Seconds: between})
	rest := took.Seconds()
	for _, part := range parts {
		rest -= part.Seconds
	}
	return append(parts, report.Step{Name: partEnd, Seconds: rest}), nil
}

// printSplit prints for each site what the parts of its median calls took, and what a call of the empty module did beside them.
func printSplit(rows []row) {
	for len(rows) > 0 {
		count := 1
		for count < len(rows) && rows[count].site == rows[0].site {
			count++
		}
		printSplitOf(rows[:count])
		rows = rows[count:]
	}
}

// printSplitOf prints it for one site, a column for each case.
func printSplitOf(cases []row) {
	fmt.Printf("\n| %s: part of the call |", cases[0].site)
	for _, c := range cases {
		fmt.Printf(" %s |", c.publishCase)
	}
	fmt.Println("\n|---|" + strings.Repeat("---:|", len(cases)))
	line := func(name string, took func(row) float64) {
		fmt.Printf("| %s |", name)
		for _, c := range cases {
			fmt.Printf(" %.2f s |", took(c))
		}
		fmt.Println()
	}
	for _, part := range median(cases[0].castle).parts {
		line(part.Name, func(c row) float64 {
			for _, other := range median(c.castle).parts {
				if other.Name == part.Name {
					return other.Seconds
				}
			}
			return 0
		})
	}
	line("**in all**", func(c row) float64 { return median(c.castle).took.Seconds() })
	line("an empty Go module's call, for comparison", func(c row) float64 { return median(c.empty).took.Seconds() })
}
