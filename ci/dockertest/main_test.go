//go:build linux

package dockertest

import (
	"fmt"
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	Main()
	if os.Getenv("CASTLE_E2E") == "" {
		fmt.Println("the tests with a real Docker daemon were skipped: they take minutes, `make test` sets CASTLE_E2E")
	}
	os.Exit(m.Run())
}

// endToEnd skips a test that starts a daemon where only quick tests are wanted.
func endToEnd(t *testing.T) {
	t.Helper()
	if os.Getenv("CASTLE_E2E") == "" {
		t.Skip("CASTLE_E2E is not set")
	}
}

// cannotRun ends a test that lacks something. Where all tests are required,
// that is a failure.
func cannotRun(t *testing.T, format string, args ...any) {
	t.Helper()
	if os.Getenv("CASTLE_REQUIRE_ALL") != "" {
		t.Fatalf("CASTLE_REQUIRE_ALL is set, and the test cannot run: "+format, args...)
	}
	loudly(t, format, args...)
}

// loudly skips with a message that stands out in a long log.
func loudly(t *testing.T, format string, args ...any) {
	t.Helper()
	t.Skipf("\n*** THE NORMAL PATH, DOCKER AND THE DAGGER CLI, WAS NOT TESTED ***\n"+format+"\n", args...)
}
