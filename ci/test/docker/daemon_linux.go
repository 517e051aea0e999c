package docker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// startDeadline bounds the time until the daemon answers; it takes one to three seconds.
const startDeadline = time.Minute

// Packages are the Debian packages that a daemon needs. Where a dockerd is installed, docker.io is not needed.
var Packages = []string{"docker.io", "slirp4netns"}

// CannotStartError says that this machine does not let a Docker daemon run.
type CannotStartError struct {
	Reason error
	// Log are the last lines that the daemon wrote.
	Log string
}

func (e *CannotStartError) Error() string {
	if e.Log == "" {
		return fmt.Sprintf("dockerd does not start on this machine: %v", e.Reason)
	}
	return fmt.Sprintf("dockerd does not start on this machine: %v; its last lines:\n%s", e.Reason, e.Log)
}

func (e *CannotStartError) Unwrap() error { return e.Reason }

// Daemon is a running Docker daemon.
type Daemon struct {
	folder
	docker  *process
	network *process
}

// Start starts a daemon that keeps everything in a new folder below parent, which should be on a disk: images and
// containers go there. It needs root, dockerd and slirp4netns. A *CannotStartError means that the machine refuses.
func Start(ctx context.Context, parent string) (_ *Daemon, err error) {
	for _, program := range []string{"dockerd", "runc", "slirp4netns"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("start a Docker daemon: %w", err)
		}
	}
	if _, err := os.Stat(tunDevice); err != nil {
		return nil, &CannotStartError{Reason: fmt.Errorf("its network needs %s: %w", tunDevice, err)}
	}
	if err := removeAbandoned(parent); err != nil {
		return nil, err
	}
	folder, err := newFolder(parent)
	if err != nil {
		return nil, err
	}
	d := &Daemon{folder: folder}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.Stop())
		}
	}()
	if err := d.configure(); err != nil {
		return nil, err
	}
	networked, err := d.enter()
	if err != nil {
		return nil, &CannotStartError{Reason: err}
	}
	defer networked.Close()
	if d.network, err = joinNetwork(ctx, d.docker.pid(), d.path("slirp4netns.log")); err != nil {
		return nil, err
	}
	if err := networked.Close(); err != nil {
		return nil, err
	}
	if err := d.wait(ctx); err != nil {
		return nil, &CannotStartError{Reason: err, Log: lastLines(d.path(logName), 20)}
	}
	return d, nil
}

// Host is the daemon's address in the form of DOCKER_HOST.
func (d *Daemon) Host() string { return "unix://" + d.socket() }

func (d *Daemon) socket() string { return d.path("docker.sock") }

// configure writes daemon.json, and the names under which the test binary is called by what it starts.
func (d *Daemon) configure() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	for _, name := range []string{insideName, wrapperName} {
		if err := os.Symlink(self, d.path(name)); err != nil {
			return err
		}
	}
	settings := map[string]any{
		"hosts":          []string{d.Host()},
		"data-root":      d.path("data"),
		"exec-root":      d.path("exec"),
		"pidfile":        d.path("docker.pid"),
		"dns":            []string{nameserver},
		"exec-opts":      []string{"native.cgroupdriver=cgroupfs"},
		"cgroup-parent":  "/" + d.cgroup(),
		"userland-proxy": false,
	}
	if lacks, err := lacksSysResource(); err != nil {
		return err
	} else if lacks {
		settings["runtimes"] = map[string]any{wrapperName: map[string]any{"path": d.path(wrapperName)}}
		settings["default-runtime"] = wrapperName
	}
	text, err := json.MarshalIndent(settings, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(d.path(configName), text, 0o644)
}

// enter starts the daemon's process in its namespaces. It becomes dockerd when the file that it returns is closed: by
// then the network must be there.
func (d *Daemon) enter() (networked *os.File, err error) {
	log, err := os.Create(d.path(logName))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	wait, networked, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer wait.Close()
	command := exec.Command(d.path(insideName), d.path(""))
	command.Stdout, command.Stderr = log, log
	command.ExtraFiles = []*os.File{wait}
	command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWIPC}
	if d.docker, err = startProcess(command); err != nil {
		networked.Close()
		return nil, fmt.Errorf("make its namespaces: %w", err)
	}
	return networked, nil
}

// wait returns when the daemon answers.
func (d *Daemon) wait(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startDeadline, fmt.Errorf("it did not answer within %s", startDeadline))
	defer cancel()
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", d.socket())
	}}}
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://docker/_ping", nil)
		if err != nil {
			return err
		}
		if response, err := client.Do(request); err == nil {
			response.Body.Close()
			if response.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-d.docker.ended:
			return fmt.Errorf("it ended: %w", d.docker.err)
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// Stop ends the daemon and everything in it, and removes what it left. Nothing is asked to end: no file that they write
// is kept, and the kernel takes a process namespace down with its first process.
func (d *Daemon) Stop() error {
	for _, process := range []*process{d.docker, d.network} {
		if process != nil {
			process.kill()
		}
	}
	return d.remove()
}

// process is a child that dies with this process.
type process struct {
	command *exec.Cmd
	// ended is closed when it has ended, with err then set.
	ended chan struct{}
	err   error
}

// startProcess starts a child. It does so on an operating system thread that lives as long as the child: the kernel
// takes the end of that thread for the parent's.
func startProcess(command *exec.Cmd) (*process, error) {
	if command.SysProcAttr == nil {
		command.SysProcAttr = &syscall.SysProcAttr{}
	}
	command.SysProcAttr.Pdeathsig = syscall.SIGKILL
	p := &process{command: command, ended: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := command.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		p.err = command.Wait()
		if p.err == nil {
			p.err = errors.New("exit status 0")
		}
		close(p.ended)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

func (p *process) pid() int { return p.command.Process.Pid }

func (p *process) kill() {
	_ = p.command.Process.Kill() // the one error is that it has ended
	<-p.ended
}

func lastLines(file string, n int) string {
	text, err := os.ReadFile(file)
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
