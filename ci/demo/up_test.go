package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/publish/report"
	"tazlab.net/castle/ci/setup"
	"tazlab.net/castle/ci/setup/daggerengine"
)

// By these variables the test's own program is told of a world to serve, and of a file to note calls in.
const (
	worldVariable = "CASTLE_TEST_WORLD"
	callsVariable = "CASTLE_TEST_CALLS"
)

// TestMain also plays the programs that the demo starts: dagger by that name, and castle where it serves the world.
func TestMain(m *testing.M) {
	switch {
	case filepath.Base(os.Args[0]) == "dagger":
		exit(fakeDagger(os.Args[1:]))
	case os.Getenv(worldVariable) != "":
		var world World
		exit(errors.Join(json.Unmarshal([]byte(os.Getenv(worldVariable)), &world), world.Serve(context.Background())))
	}
	os.Exit(m.Run())
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// fakeDagger notes the function that it is asked to call, and does as much of it as the demo looks at.
func fakeDagger(args []string) error {
	function := args[1]
	if err := note(os.Getenv(callsVariable), function); err != nil {
		return err
	}
	switch function {
	case "publish-blog":
		return json.NewEncoder(os.Stdout).Encode(report.Result{Image: report.Image{Tag: "blog-1a2b3c4"}})
	case "serve-blog":
		port := strings.TrimSuffix(strings.TrimPrefix(args[len(args)-1], "--ports="), ":80")
		return http.ListenAndServe("127.0.0.1:"+port, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "<title>Blog</title>")
		}))
	}
	return nil
}

func note(file, what string) error {
	log, err := os.OpenFile(file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(log, what)
	return errors.Join(err, log.Close())
}

// stage is a demo on a machine that has an engine already.
type stage struct {
	Demo
	t     *testing.T
	calls string
	out   strings.Builder
}

func newStage(t *testing.T) *stage {
	t.Helper()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	programs, world := t.TempDir(), newWorld(t)
	if err := os.Symlink(program, filepath.Join(programs, "dagger")); err != nil {
		t.Fatal(err)
	}
	s := &stage{t: t, calls: filepath.Join(t.TempDir(), "calls")}
	s.Demo = Demo{
		Dir: filepath.Dir(world.Dir), Source: t.TempDir(), registry: world.Registry, git: world.Git,
		Setup:  setup.Setup{Engine: daggerengine.Engine{Cache: t.TempDir()}, Log: t.Output()},
		Images: func(context.Context, setup.Plan) error { return note(s.calls, "images") },
		Serve:  []string{program},
		Out:    &s.out, Log: t.Output(),
	}
	asJSON, err := json.Marshal(world)
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(worldVariable, string(asJSON))
	t.Setenv(callsVariable, s.calls)
	t.Setenv(setup.RunnerHost, "tcp://engine.example:1234")
	t.Setenv("PATH", programs+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Cleanup(func() {
		if err := s.Down(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return s
}

// called are the calls so far, which are then forgotten.
func (s *stage) called() []string {
	s.t.Helper()
	data, err := os.ReadFile(s.calls)
	if err := errors.Join(err, os.Remove(s.calls)); err != nil {
		s.t.Fatal(err)
	}
	return strings.Fields(string(data))
}

var wholeDemo = []string{"publish-blog", "serve-blog", "images", "create", "timeline", "publish-blog"}

func TestThePageIsShownBeforeAnythingIsMadeForACluster(t *testing.T) {
	s := newStage(t)
	var shown string
	s.Images = func(context.Context, setup.Plan) error {
		shown = s.out.String()
		return note(s.calls, "images")
	}
	if err := s.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.called(); !slices.Equal(got, wholeDemo) {
		t.Errorf("%q, want %q", got, wholeDemo)
	}
	for _, want := range []string{"blog-1a2b3c4", `GET / -> 200 OK, 19 bytes, "Blog"`, "Next: a cluster in the sandbox"} {
		if !strings.Contains(shown, want) {
			t.Errorf("no %q before the cluster's images are made:\n%s", want, shown)
		}
	}
}

func TestAnInterruptedDemoSaysHowToGoOnAndDoes(t *testing.T) {
	s := newStage(t)
	ctx, interrupt := context.WithCancel(t.Context())
	images := s.Images
	s.Images = func(ctx context.Context, plan setup.Plan) error {
		interrupt()
		return errors.Join(images(ctx, plan), ctx.Err())
	}
	if err := s.Up(ctx); !errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "`make demo` goes on where it was") {
		t.Errorf("got %v", err)
	}
	if got, want := s.called(), wholeDemo[:3]; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
	s.Images = images
	if err := s.Up(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := s.called(); !slices.Equal(got, wholeDemo) {
		t.Errorf("the second time %q, want %q", got, wholeDemo)
	}
}

func TestImagesThatCannotBeMadeAreNoInterruption(t *testing.T) {
	s := newStage(t)
	broken := errors.New("no way to the module proxy")
	s.Images = func(context.Context, setup.Plan) error { return broken }
	if err := s.Up(t.Context()); !errors.Is(err, broken) || strings.Contains(err.Error(), "interrupted") {
		t.Errorf("got %v", err)
	}
}
