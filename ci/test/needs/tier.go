package needs

import (
	"fmt"
	"os"
	"testing"
)

const (
	// runOf is the variable with the run of scripts/test.sh that a test is in; without it, every test runs.
	runOf = "CASTLE_TEST_RUN"
	// leftOutFile names the file that says which tests a run has left out, for the end of its output.
	leftOutFile = "CASTLE_LEFT_OUT"

	runMost      = "most"       // all but the slow tests
	runMainPaths = "main-paths" // the tools had to be built: there is no time for more
)

// Slow marks a test whose code other tests run, too, here or in its package, and that takes long. `make test ALL=1` runs it, and where it is
// a story, `make drill`.
func Slow(t testing.TB) {
	t.Helper()
	if run := os.Getenv(runOf); run == runMost || run == runMainPaths {
		LeftTo(t, "make test ALL=1")
	}
}

// Most marks a test of ci/test/docker or ci/test/e2e that is neither slow nor a main path. Where the tools had to be built, it is left to
// the next run.
func Most(t testing.TB) {
	t.Helper()
	if os.Getenv(runOf) == runMainPaths {
		LeftTo(t, "the next make test")
	}
}

// MainPath marks a test of what every user does, which each run has time for.
func MainPath(testing.TB) {}

// LeftTo leaves a test to another call, and notes it for the run's last words.
func LeftTo(t testing.TB, call string) {
	t.Helper()
	if name := os.Getenv(leftOutFile); name != "" {
		file, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		_, err = fmt.Fprintf(file, "%s: %s\n", call, t.Name())
		if closing := file.Close(); err == nil {
			err = closing
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Skipf("LEFT TO %s", call)
}
