// Package daggerengine runs a Dagger engine that was built from Go modules, on Linux
// machines that have neither Docker nor a release page to download from. It is
// the fallback: where an engine or Docker is there, nothing of this is used.
//
// Everything the engine owns stands in one folder of the user's cache. A supervising process of ours serves the image
// mirror, where one is used, and runs the engine in a mount namespace of its own, in which that folder's run/ is
// mounted over /run and its cni/ over /var/lib/cni: the engine writes fixed paths there, and it mounts its own
// resolv.conf over /etc/resolv.conf, which the host must never see.
package daggerengine

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"tazlab.net/castle/ci/setup/daemon"
	"tazlab.net/castle/ci/setup/gotool"
)

// Packages are the Debian packages that the engine needs beside its own programs: runc starts containers, dnsmasq
// resolves names between them, iptables and the CNI plugins join them to the network, git fetches sources.
var Packages = []string{"runc", "iptables", "dnsmasq-base", "containernetworking-plugins", "git", "ca-certificates"}

const (
	// startDeadline bounds the time until the engine's socket answers; it takes a second or two.
	startDeadline = 2 * time.Minute
	// stopGrace lets running sessions end and the network be taken down.
	stopGrace = 20 * time.Second
)

// Engine is the one engine of a cache folder.
type Engine struct {
	// Cache is the root of castle's cache folder.
	Cache string
	// Install makes sure that Debian packages are there.
	Install func(ctx context.Context, packages ...string) error
	// Toolchain returns the image that Go code is compiled in. It is the base of the Go SDK's image, which the engine
	// has built in.
	Toolchain func(ctx context.Context) (v1.Image, error)
	// Supervisor is the command that calls Run on an engine of the same cache folder, and SupervisorID what changes
	// when a running one must be replaced (the mirror that it serves, say).
	Supervisor   []string
	SupervisorID string
	// Log gets lines for a person.
	Log io.Writer
}

// Mirror is the registry that the engine pulls from instead of the real ones.
type Mirror struct {
	// Serve serves it until ctx ends, and calls ready once with its address.
	Serve func(ctx context.Context, ready func(net.Addr)) error
	// Config returns the part of engine.toml that points the engine at it, given its address (host:port).
	Config func(address string) ([]byte, error)
}

// State is what an engine does.
type State string

// The states. An engine that was started, not stopped, and no longer answers has crashed.
const (
	Running State = "running"
	Stopped State = "stopped"
	Crashed State = "crashed"
)

// Status says what is there.
type Status struct {
	State State `json:"state"`
	// PID is the supervising process.
	PID int `json:"pid,omitempty"`
	// Host is the value for _EXPERIMENTAL_DAGGER_RUNNER_HOST.
	Host string `json:"host,omitempty"`
	// CLI is the folder with the dagger command that was built with the engine.
	CLI string `json:"cli,omitempty"`
	// Log is the file with the engine's own output.
	Log string `json:"log"`
}

func (e Engine) folder(elements ...string) string {
	return filepath.Join(append([]string{e.Cache, "engine"}, elements...)...)
}

func (e Engine) socket() string { return e.folder("run", "dagger", "engine.sock") }

func (e Engine) daemon() daemon.Daemon {
	return daemon.Daemon{Name: "engine", Record: e.folder("engine.json"), Log: e.folder("engine.log")}
}

// process is the engine itself, which outlives a killed supervisor for as long as it takes to end its sessions, and
// holds the lock on its state until then.
func (e Engine) process() daemon.Daemon {
	return daemon.Daemon{Name: "engine", Record: e.folder("engine-process.json")}
}

// stop ends the supervisor, and the engine where that was left behind.
func (e Engine) stop(ctx context.Context) (ran bool, err error) {
	if ran, err = e.daemon().Stop(ctx, stopGrace); err != nil {
		return ran, err
	}
	_, err = e.process().Stop(ctx, stopGrace)
	return ran, err
}

func (e Engine) tools() gotool.Builder {
	return gotool.Builder{Cache: filepath.Join(e.Cache, "tools"), Log: e.Log}
}

// Status reports the engine without changing anything.
func (e Engine) Status(ctx context.Context) (Status, error) {
	state, err := e.daemon().State(ctx)
	if err != nil {
		return Status{}, err
	}
	status := Status{State: Stopped, Log: e.daemon().Log}
	switch {
	case state.Running && e.answers(ctx) == nil:
		status.State, status.PID = Running, state.PID
		status.Host, status.CLI = "unix://"+e.socket(), state.Data["cli"]
	case state.Recorded:
		status.State = Crashed
	}
	return status, nil
}

// Up makes sure that an engine of the pinned version runs. One that runs already is left alone; one that crashed, or
// that another version of castle started, is replaced.
func (e Engine) Up(ctx context.Context) (Status, error) {
	if err := supported(); err != nil {
		return Status{}, err
	}
	unlock, err := lock(e.folder("lock"))
	if err != nil {
		return Status{}, err
	}
	defer func() { _ = unlock() }()

	recipe, err := gotool.Load("dagger")
	if err != nil {
		return Status{}, err
	}
	bin := e.tools().Dir(recipe)
	fingerprint := fingerprintOf(bin, e.SupervisorID)
	status, err := e.Status(ctx)
	if err != nil {
		return Status{}, err
	}
	state, err := e.daemon().State(ctx)
	if err != nil {
		return Status{}, err
	}
	switch {
	case status.State == Running && state.Fingerprint == fingerprint:
		e.logf("the engine runs already (process %d)", status.PID)
		return status, nil
	case status.State == Running:
		e.logf("another version of the engine runs (process %d): replacing it", status.PID)
	case status.State == Crashed:
		e.logf("the engine (process %d) has crashed, its output is in %s.crashed: replacing it", state.PID, status.Log)
		if err := os.Rename(status.Log, status.Log+".crashed"); err != nil && !errors.Is(err, os.ErrNotExist) {
			return Status{}, err
		}
	}
	if _, err := e.stop(ctx); err != nil {
		return Status{}, err
	}

	if err := e.Install(ctx, Packages...); err != nil {
		return Status{}, err
	}
	programs, err := e.tools().Build(ctx, recipe.Name)
	if err != nil {
		return Status{}, err
	}
	if err := e.prepare(ctx, programs); err != nil {
		return Status{}, err
	}
	start := time.Now()
	_, err = e.daemon().Start(ctx, daemon.Spec{
		Command:     e.Supervisor,
		Fingerprint: fingerprint,
		Data:        map[string]string{"cli": bin},
		Ready:       e.answers,
		Deadline:    startDeadline,
	})
	if err != nil {
		return Status{}, err
	}
	e.logf("engine %s started in %s", recipe.Version, time.Since(start).Round(100*time.Millisecond))
	return e.Status(ctx)
}

// Down stops the engine and takes its network away. It keeps what the engine cached. It returns whether one ran.
func (e Engine) Down(ctx context.Context) (bool, error) {
	unlock, err := lock(e.folder("lock"))
	if err != nil {
		return false, err
	}
	defer func() { _ = unlock() }()
	return e.stop(ctx)
}

// answers connects to the engine's socket.
func (e Engine) answers(ctx context.Context) error {
	dialer := net.Dialer{Timeout: 5 * time.Second}
	connection, err := dialer.DialContext(ctx, "unix", e.socket())
	if err != nil {
		return err
	}
	return connection.Close()
}

func (e Engine) logf(format string, args ...any) {
	if e.Log != nil {
		fmt.Fprintf(e.Log, format+"\n", args...)
	}
}

// supported explains where an engine of ours cannot run.
func supported() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("an engine of castle's own runs on Linux only, this is %s: install Docker and the dagger CLI, or set _EXPERIMENTAL_DAGGER_RUNNER_HOST", runtime.GOOS)
	}
	if os.Geteuid() != 0 {
		return errors.New("an engine of castle's own needs root, to mount and to start containers: run it with sudo -E, or install Docker and the dagger CLI, or set _EXPERIMENTAL_DAGGER_RUNNER_HOST")
	}
	return nil
}

func fingerprintOf(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:8])
}
