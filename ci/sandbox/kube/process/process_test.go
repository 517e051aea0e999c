//go:build linux

package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// output is what a program printed.
type output struct {
	mu     sync.Mutex
	buffer bytes.Buffer
}

func (o *output) Write(data []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.Write(data)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buffer.String()
}

func shell(t *testing.T, script string) (*Process, *output) {
	t.Helper()
	printed := &output{}
	p, err := Start(Command{Path: "/bin/sh", Args: []string{"-c", script}, Log: printed, Env: []string{"PATH=/usr/bin:/bin"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p, printed
}

func waitFor(t *testing.T, printed *output, text string) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); !strings.Contains(printed.String(), text); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("it printed %q, not %q", printed, text)
		}
	}
}

func TestAProgramThatDoesNotListenIsKilledAfterItsGrace(t *testing.T) {
	p, printed := shell(t, "trap '' TERM; echo ready; while :; do sleep 0.05; done")
	waitFor(t, printed, "ready")
	start := time.Now()
	p.Stop(300 * time.Millisecond)
	if took := time.Since(start); took < 300*time.Millisecond || took > time.Minute {
		t.Errorf("it ended after %s", took)
	}
	if code := p.ExitCode(); code != 128+int(syscall.SIGKILL) {
		t.Errorf("its code is %d", code)
	}
}

func TestAProgramThatListensEndsByItself(t *testing.T) {
	p, printed := shell(t, "trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.05; done")
	waitFor(t, printed, "ready")
	p.Stop(10 * time.Second)
	if code := p.ExitCode(); code != 3 || !strings.Contains(printed.String(), "bye") {
		t.Errorf("code %d, printed %q", code, printed)
	}
}

func TestALogKeepsTheLatestAndNeverGrowsBeyondTwiceItsLimit(t *testing.T) {
	name := filepath.Join(t.TempDir(), "sub", "x.log")
	log, err := OpenLog(name)
	if err != nil {
		t.Fatal(err)
	}
	line := []byte(strings.Repeat("x", 1<<16))
	for range 3 * logLimit / len(line) {
		if n, err := log.Write(line); n != len(line) || err != nil {
			t.Fatal(n, err)
		}
	}
	_, _ = log.Write([]byte("last"))
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if n, err := log.Write([]byte("late")); n != 4 || err != nil {
		t.Errorf("a write after Close: %d, %v", n, err)
	}
	data, err := os.ReadFile(name)
	if err != nil || !strings.HasSuffix(string(data), "last") {
		t.Errorf("the log does not end with the last line: %v", err)
	}
	entries, err := os.ReadDir(filepath.Dir(name))
	if err != nil || len(entries) != 2 {
		t.Fatal(entries, err)
	}
	for _, entry := range entries {
		if info, err := entry.Info(); err != nil || info.Size() > logLimit+int64(len(line)) {
			t.Errorf("%s has %d bytes, %v", entry.Name(), info.Size(), err)
		}
	}
}
