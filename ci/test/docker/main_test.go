//go:build linux

package docker

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
