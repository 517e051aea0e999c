// Package daemon keeps one background process: it starts it detached from the terminal, finds it again by a record
// file, and stops it by its process id. It never touches a process that it did not start: a record names the process's
// start time too, so that a reused id is not mistaken for ours.
package daemon

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/google/renameio/v2"
)

// Daemon describes a background process.
type Daemon struct {
	// Name is how errors call it.
	Name string
	// Record is the file that remembers the running process.
	Record string
	// Log receives the process's output; it is emptied at each start.
	Log string
}

// Spec is what to start.
type Spec struct {
	Command []string
	// Env is added to this process's environment.
	Env []string
	// Fingerprint identifies the configuration: a caller compares it with the record's to see whether what runs is what
	// it wants.
	Fingerprint string
	// Data is kept in the record for the callers that find the process later.
	Data map[string]string
	// Ready returns nil once the process serves. It is polled until then.
	Ready func(context.Context) error
	// Deadline bounds the time from start to ready.
	Deadline time.Duration
}

// State is what a record says about a process.
type State struct {
	PID         int               `json:"pid"`
	Started     string            `json:"started"`
	Fingerprint string            `json:"fingerprint"`
	Data        map[string]string `json:"data,omitempty"`

	// Recorded says that a process was started and not stopped since, Running that it still lives.
	Recorded bool `json:"-"`
	Running  bool `json:"-"`
}

// readyInterval is how often a starting process is asked whether it serves:
// a few times in the second or two that a start takes.
const readyInterval = 50 * time.Millisecond

// State reads the record. A missing record is not an error.
func (d Daemon) State(ctx context.Context) (State, error) {
	var state State
	data, err := os.ReadFile(d.Record)
	if errors.Is(err, fs.ErrNotExist) {
		return state, nil
	}
	if err != nil {
		return state, err
	}
	if err := json.Unmarshal(data, &state); err != nil {
		return state, fmt.Errorf("%s: %w: remove the file if no %s is running", d.Record, err, d.Name)
	}
	state.Recorded = true
	started, err := startTime(ctx, state.PID)
	state.Running = err == nil && started == state.Started
	return state, nil
}

// Start starts the process and waits until it is ready. When it ends early or is not ready by the deadline, it is
// stopped and the error ends with the last lines of its log.
func (d Daemon) Start(ctx context.Context, spec Spec) (State, error) {
	for _, file := range []string{d.Record, d.Log} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return State{}, err
		}
	}
	log, err := os.OpenFile(d.Log, os.O_CREATE|os.O_TRUNC|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return State{}, err
	}
	defer log.Close()

	command := exec.Command(spec.Command[0], spec.Command[1:]...)
	command.Env = append(os.Environ(), spec.Env...)
	command.Stdout, command.Stderr = log, log
	command.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := command.Start(); err != nil {
		return State{}, fmt.Errorf("start %s: %w", d.Name, err)
	}
	exited := make(chan error, 1)
	go func() { exited <- command.Wait() }()

	state := State{PID: command.Process.Pid, Fingerprint: spec.Fingerprint, Data: spec.Data, Recorded: true, Running: true}
	if state.Started, err = startTime(ctx, state.PID); err == nil {
		err = d.write(state)
	}
	if err == nil {
		err = waitReady(ctx, spec, exited)
	}
	if err != nil {
		_ = command.Process.Signal(syscall.SIGTERM)
		select {
		case <-exited:
		case <-time.After(10 * time.Second):
			_ = command.Process.Kill()
		}
		_ = os.Remove(d.Record)
		return State{}, fmt.Errorf("start %s: %w\n%s", d.Name, err, d.lastLogLines(15))
	}
	return state, nil
}

// Adopt records a process that was started by other means, for a later Stop.
func (d Daemon) Adopt(ctx context.Context, pid int) error {
	started, err := startTime(ctx, pid)
	if err != nil {
		return err
	}
	return d.write(State{PID: pid, Started: started})
}

func waitReady(ctx context.Context, spec Spec, exited chan error) error {
	ctx, cancel := context.WithTimeout(ctx, spec.Deadline)
	defer cancel()
	ticker := time.NewTicker(readyInterval)
	defer ticker.Stop()
	for {
		err := spec.Ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case exit := <-exited:
			exited <- exit
			return fmt.Errorf("it ended before it was ready: %w", exit)
		case <-ctx.Done():
			return fmt.Errorf("not ready after %s: %w", spec.Deadline, err)
		case <-ticker.C:
		}
	}
}

// Stop ends the process: asked at first, killed when it has not gone after grace. It returns whether there was one to
// stop.
func (d Daemon) Stop(ctx context.Context, grace time.Duration) (bool, error) {
	state, err := d.State(ctx)
	if err != nil || !state.Recorded {
		return false, err
	}
	if state.Running {
		if err := d.terminate(ctx, state, grace); err != nil {
			return false, err
		}
	}
	return state.Running, os.Remove(d.Record)
}

func (d Daemon) terminate(ctx context.Context, state State, grace time.Duration) error {
	for _, step := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{syscall.SIGTERM, grace}, {syscall.SIGKILL, 10 * time.Second}} {
		if err := syscall.Kill(state.PID, step.signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop %s (process %d): %w", d.Name, state.PID, err)
		}
		if gone(ctx, state, step.wait) {
			return nil
		}
	}
	return fmt.Errorf("stop %s: process %d outlives SIGKILL", d.Name, state.PID)
}

func gone(ctx context.Context, state State, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	ticker := time.NewTicker(readyInterval)
	defer ticker.Stop()
	for {
		// Without the deadline's context: an expired one would make ps fail and a living process look gone.
		if started, err := startTime(context.WithoutCancel(ctx), state.PID); err != nil || started != state.Started {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
}

func (d Daemon) write(state State) error {
	data, err := json.Marshal(state)
	if err != nil {
		return err
	}
	return renameio.WriteFile(d.Record, data, 0o600)
}

func (d Daemon) lastLogLines(n int) string {
	data, _ := os.ReadFile(d.Log)
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}

// startTime returns when a process started, in the system's own words: clock ticks since boot where there is /proc,
// else ps's date. It fails when there is no such process or only its zombie.
func startTime(ctx context.Context, pid int) (string, error) {
	if stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)); err == nil {
		// The second field, the program's name, may hold spaces and parentheses; the third (state) and the 22nd (start
		// time) follow its last one. See proc_pid_stat(5).
		fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
		if fields[0] == "Z" {
			return "", fmt.Errorf("process %d has ended", pid)
		}
		return fields[19], nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	output, err := exec.CommandContext(ctx, "ps", "-o", "stat=,lstart=", "-p", strconv.Itoa(pid)).Output()
	if err != nil {
		return "", fmt.Errorf("process %d: %w", pid, err)
	}
	status, started, _ := strings.Cut(strings.TrimSpace(string(output)), " ")
	if strings.HasPrefix(status, "Z") {
		return "", fmt.Errorf("process %d has ended", pid)
	}
	return strings.TrimSpace(started), nil
}
