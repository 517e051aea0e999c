// Package e2e calls castle's functions as a user does: by `dagger call`, on a real engine, against a real registry and
// a real Git remote on this machine's loopback addresses.
package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"testing"
	"time"
)

// transcript is all that the dagger command printed in all tests: the place to look for secrets in.
var transcript lockedBuffer

func TestMain(m *testing.M) {
	if os.Getenv("CASTLE_E2E") == "" {
		fmt.Println("the end-to-end tests were skipped: they need an engine, `make test` starts one and sets CASTLE_E2E")
		return
	}
	os.Exit(m.Run())
}

// callTimeout bounds one `dagger call`. The first in an empty cache compiles the module and castle's program, some
// minutes on two cores.
const callTimeout = 15 * time.Minute

// outcome is what a call printed and how it ended.
type outcome struct {
	stdout, stderr string
	err            error
}

// call is `dagger call` of this repository's module.
func call(t *testing.T, environment []string, args ...string) outcome {
	t.Helper()
	return dagger(t, environment, append([]string{"call", "--progress=plain"}, args...)...)
}

func dagger(t *testing.T, environment []string, args ...string) outcome {
	t.Helper()
	return daggerIn(t, root(t), environment, args...)
}

// daggerIn runs the dagger command in a folder.
func daggerIn(t *testing.T, folder string, environment []string, args ...string) outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
	defer cancel()
	command, stdout, stderr := prepare(ctx, t, environment, args...)
	command.Dir = folder
	start := time.Now()
	processes := tellOverdue(callTimeout)
	err := command.Run()
	t.Logf("dagger %s: %s", args[min(2, len(args)-1)], time.Since(start).Round(10*time.Millisecond))
	if running := processes(); ctx.Err() != nil {
		t.Logf("dagger %v was interrupted after %s. Processes then:\n%s\nIts last lines:\n%s", args, callTimeout, running, lastLines(stderr.Bytes(), overdueSteps))
	}
	return outcome{stdout: stdout.String(), stderr: stderr.String(), err: err}
}

func prepare(ctx context.Context, t *testing.T, environment []string, args ...string) (command *exec.Cmd, stdout, stderr *bytes.Buffer) {
	t.Helper()
	stdout, stderr = new(bytes.Buffer), new(bytes.Buffer)
	command = exec.CommandContext(ctx, "dagger", args...)
	command.Dir = root(t)
	command.Env = append(os.Environ(), append(environment, "NO_COLOR=1")...)
	command.Stdout = io.MultiWriter(stdout, &transcript)
	command.Stderr = io.MultiWriter(stderr, &transcript)
	command.Cancel = func() error { return command.Process.Signal(syscall.SIGINT) }
	command.WaitDelay = 20 * time.Second
	return command, stdout, stderr
}

// mustCall is a call that has to succeed.
func mustCall(t *testing.T, environment []string, args ...string) string {
	t.Helper()
	done := call(t, environment, args...)
	if done.err != nil {
		t.Fatalf("%v\n%s", done.err, done.stderr)
	}
	return done.stdout
}

type lockedBuffer struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buffer.Write(p)
}

func (b *lockedBuffer) Bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.buffer.Bytes())
}
