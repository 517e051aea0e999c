package publish_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/registry/registrytest"
	"tazlab.net/castle/ci/base/tracing/tracingtest"
	"tazlab.net/castle/ci/publish"
	"tazlab.net/castle/ci/publish/publishtest"
)

// pushedMeanwhile is a hook by which somebody else pushes to the branch while the server takes the first push.
const pushedMeanwhile = `#!/bin/sh
test -e "$GIT_DIR/pushed" && exit 0
touch "$GIT_DIR/pushed"
unset GIT_QUARANTINE_PATH GIT_OBJECT_DIRECTORY GIT_ALTERNATE_OBJECT_DIRECTORIES
new=$(git -c user.name=x -c user.email=x@localhost commit-tree -p "$2" -m busy "$2^{tree}") && git update-ref "$1" "$new"
`

func hook(t *testing.T, w *publishtest.World, script string) {
	t.Helper()
	name := filepath.Join(w.Bare(), "hooks", "update")
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
}

// again is the step by which a person learns of a repetition; which blob it is of is not always the same.
var again = regexp.MustCompile(`^ +(.*) failed at attempt 1: (.*); trying again in \S+, giving up at \S+ UTC \(in [0-9ms]+\): ok\n$`)

var digest = regexp.MustCompile(`sha256:[0-9a-f]{64}`)

// A registry that fails once at a blob, and a branch that somebody else pushes to.
func TestThePhasesOfAPublishAreSpans(t *testing.T) {
	w := publishtest.New(t, registrytest.Fault{Mood: registrytest.ServerError, Times: 1})
	hook(t, w, pushedMeanwhile)
	ctx, stop, received := tracingtest.Trace(t)
	result, err := publish.Run(ctx, w.Options(t, "1a2b3c4", publishtest.NewImage(t)))
	if err != nil {
		t.Fatal(err)
	}
	if err := result.WaitRollout(ctx, &publishtest.Cluster{T: t, World: w}); err != nil {
		t.Fatal(err)
	}
	stop()
	want := `push the image: ok
  look at blog-1a2b3c4: ok
  check the GitOps repository: ok
    attempt 1: ok
  blob sha256: ok
  manifest sha256: ok
  look at blog-1a2b3c4: ok
  manifest blog-1a2b3c4: ok
  confirmation of blog-1a2b3c4: ok
update the manifest: ok
  attempt 1: error
  attempt 2: ok
wait for the rollout: ok
`
	for _, phase := range []string{"push the image", "update the manifest", "wait for the rollout"} {
		if received.Attribute(phase, "dagger.io/ui.reveal") != "true" {
			t.Errorf("%s is hidden below the container that it goes on in", phase)
		}
	}
	lines := strings.SplitAfter(digest.ReplaceAllString(received.Tree(), "sha256"), "\n")
	var repeated []string
	lines = slices.DeleteFunc(lines, func(line string) bool {
		match := again.FindStringSubmatch(line)
		if match != nil {
			repeated = append(repeated, match[1]+": "+match[2])
		}
		return match != nil
	})
	if want := []string{
		"blob sha256: 500 Internal Server Error: UNKNOWN something went wrong with the storage", "the push to branch main: somebody else was faster",
	}; !slices.Equal(repeated, want) {
		t.Errorf("repetitions %q, want %q", repeated, want)
	}
	for i, line := range lines {
		if before, _, failed := strings.Cut(line, ": error: "); failed {
			lines[i] = before + ": error\n"
		}
	}
	if tree := strings.Join(slices.Compact(lines), ""); tree != want {
		t.Errorf("got\n%s, want\n%s", tree, want)
	}
	if text := received.Text(); w.Met(registrytest.ServerError) != 1 || strings.Count(text, `"again"`) != 1 || !strings.Contains(text, "500 Internal Server Error") {
		t.Errorf("the repetition is not told in\n%s", text)
	}
}

func TestWhatAPublishFailsForIsInItsSpanWithoutCredentials(t *testing.T) {
	w := publishtest.New(t)
	hook(t, w, "#!/bin/sh\necho 'error: who is "+publishtest.GitToken+"' >&2\nexit 1\n")
	ctx, stop, received := tracingtest.Trace(t)
	if _, err := publish.Run(ctx, w.Options(t, "1a2b3c4", publishtest.NewImage(t))); err == nil {
		t.Fatal("there was no error")
	}
	stop()
	tree := received.Tree()
	if !strings.Contains(tree, "\nupdate the manifest: error: ") || !strings.Contains(tree, "\n  attempt 1: error: ") || !strings.Contains(tree, "who is") {
		t.Errorf("got\n%s", tree)
	}
	mustHoldNoCanary(t, "the trace", received.Text())
}
