package daemon

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func newDaemon(t *testing.T) Daemon {
	t.Helper()
	dir := t.TempDir()
	return Daemon{Name: "thing", Record: filepath.Join(dir, "thing.json"), Log: filepath.Join(dir, "thing.log")}
}

// start starts a shell script that is ready when it has written the marker.
func start(t *testing.T, d Daemon, script string) (State, error) {
	t.Helper()
	marker := filepath.Join(t.TempDir(), "ready")
	return d.Start(t.Context(), Spec{
		Command:     []string{"/bin/sh", "-c", script, "sh", marker},
		Fingerprint: "one",
		Deadline:    5 * time.Second,
		Ready: func(context.Context) error {
			_, err := os.Stat(marker)
			return err
		},
	})
}

func TestAStartedProcessIsFoundAgainAndStopped(t *testing.T) {
	d := newDaemon(t)
	if _, err := start(t, d, `touch "$1"; exec sleep 60`); err != nil {
		t.Fatal(err)
	}
	state, err := d.State(t.Context())
	if err != nil || !state.Running || state.Fingerprint != "one" {
		t.Fatalf("got %+v, %v; want a running process", state, err)
	}
	stopped, err := d.Stop(t.Context(), 5*time.Second)
	if err != nil || !stopped {
		t.Fatalf("got %t, %v; want it stopped", stopped, err)
	}
	if _, err := startTime(t.Context(), state.PID); err == nil {
		t.Error("the process still runs")
	}
	if state, err := d.State(t.Context()); err != nil || state.Recorded {
		t.Errorf("got %+v, %v; want no record", state, err)
	}
}

func TestAProcessThatIgnoresTheSignalIsKilled(t *testing.T) {
	d := newDaemon(t)
	state, err := start(t, d, `trap "" TERM; touch "$1"; while :; do sleep 1; done`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.Stop(t.Context(), 200*time.Millisecond); err != nil {
		t.Fatal(err)
	}
	if _, err := startTime(t.Context(), state.PID); err == nil {
		t.Error("the process still runs")
	}
}

func TestAProcessThatDiedIsRecordedButNotRunning(t *testing.T) {
	d := newDaemon(t)
	state, err := start(t, d, `touch "$1"; exec sleep 60`)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(state.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if !gone(t.Context(), state, 5*time.Second) {
		t.Fatal("the process outlives SIGKILL")
	}
	state, err = d.State(t.Context())
	if err != nil || !state.Recorded || state.Running {
		t.Errorf("got %+v, %v; want it recorded and not running", state, err)
	}
}

func TestAnotherProcessWithTheSameIDIsLeftAlone(t *testing.T) {
	d := newDaemon(t)
	// This very process, as if the recorded one's id had come to it.
	if err := d.write(State{PID: os.Getpid(), Started: "another time"}); err != nil {
		t.Fatal(err)
	}
	stopped, err := d.Stop(t.Context(), time.Second)
	if err != nil || stopped {
		t.Errorf("got %t, %v; want nothing stopped", stopped, err)
	}
}

func TestAProcessThatEndsEarlyIsAnErrorWithItsLastWords(t *testing.T) {
	d := newDaemon(t)
	_, err := start(t, d, `echo the disk is full >&2; exit 1`)
	if err == nil || !strings.Contains(err.Error(), "the disk is full") {
		t.Fatalf("got %v, want the process's last words", err)
	}
	if state, err := d.State(t.Context()); err != nil || state.Recorded {
		t.Errorf("got %+v, %v; want no record", state, err)
	}
}

func TestAProcessThatIsNeverReadyIsStopped(t *testing.T) {
	d := newDaemon(t)
	_, err := d.Start(t.Context(), Spec{
		Command:  []string{"sleep", "60"},
		Deadline: 300 * time.Millisecond,
		Ready:    func(context.Context) error { return errors.New("the socket is not there") },
	})
	if err == nil || !strings.Contains(err.Error(), "the socket is not there") {
		t.Fatalf("got %v, want what readiness last said", err)
	}
}
