package e2e

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tazlab.net/castle/ci/test/needs"
)

// castle runs castle's own program on this machine.
func castle(t *testing.T, args ...string) (output string, exit int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, os.Getenv("CASTLE"), args...)
	command.Dir = root(t)
	command.WaitDelay = 10 * time.Second
	out, err := command.CombinedOutput()
	var failed *exec.ExitError
	if err != nil && !errors.As(err, &failed) {
		t.Fatal(err)
	}
	return string(out), command.ProcessState.ExitCode()
}

// engineCommand runs `castle engine` on the engine that the tests use. It skips where that is not castle's own.
func engineCommand(t *testing.T, verb string) (output string, exit int) {
	t.Helper()
	if !ownEngine() {
		t.Skip("NOT RUN: the engine is not castle's own")
	}
	return castle(t, "engine", verb, "--cache="+os.Getenv("CASTLE_CACHE"))
}

var pidLine = regexp.MustCompile(`(?m)^pid +(\d+)$`)

func enginePID(t *testing.T, status string) int {
	t.Helper()
	found := pidLine.FindStringSubmatch(status)
	if found == nil {
		t.Fatalf("no process id in:\n%s", status)
	}
	pid, err := strconv.Atoi(found[1])
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

func TestASecondUpChangesNothing(t *testing.T) {
	needs.Most(t)
	before, exit := engineCommand(t, "status")
	if exit != 0 {
		t.Fatalf("the engine does not run:\n%s", before)
	}
	again, exit := engineCommand(t, "up")
	if exit != 0 || !strings.Contains(again, "runs already") || enginePID(t, again) != enginePID(t, before) {
		t.Errorf("up on a running engine ended with %d and said:\n%s\nbefore:\n%s", exit, again, before)
	}
}

func TestACrashedEngineIsDetectedAndReplaced(t *testing.T) {
	needs.Most(t)
	before, _ := engineCommand(t, "status")
	pid := enginePID(t, before)
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		status, exit := engineCommand(t, "status")
		if exit == 3 && strings.Contains(status, "crashed") {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the killed engine counts as:\n%s", status)
		}
	}
	up, exit := engineCommand(t, "up")
	if exit != 0 || !strings.Contains(up, "has crashed") || enginePID(t, up) == pid {
		t.Fatalf("up on a crashed engine ended with %d and said:\n%s", exit, up)
	}
	if done := dagger(t, nil, "core", "version"); done.err != nil {
		t.Errorf("the new engine does not answer: %v\n%s", done.err, done.stderr)
	}
}

func TestTheEngineLeavesTheHostsResolverAlone(t *testing.T) {
	needs.Most(t)
	if !ownEngine() {
		t.Skip("NOT RUN: the engine is not castle's own")
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	if engine := filepath.Join(os.Getenv("CASTLE_CACHE"), "engine"); strings.Contains(string(mounts), engine) || strings.Contains(string(mounts), "/etc/resolv.conf") {
		t.Errorf("the engine's mounts are seen on the host:\n%s", mounts)
	}
}
