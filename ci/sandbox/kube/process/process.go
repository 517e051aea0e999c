//go:build linux

package process

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// leftover is how long output is waited for once a program has ended, in case a child of it holds its standard output.
const leftover = time.Second

// Command is a program to start.
type Command struct {
	Path string
	Args []string // without the program's name
	Env  []string
	Dir  string
	Log  io.Writer // gets standard output and standard error
	// Root, when set, is the folder that the program sees as "/"; Path and Dir are then below it.
	Root string
	// User, when set, is who the program runs as.
	User *syscall.Credential
	// Inside, when set, runs on the thread that then starts the program: namespaces that it enters are the program's, and
	// nobody else's.
	Inside func() error
}

// Process is a started program.
type Process struct {
	command *exec.Cmd
	done    chan struct{}
	err     error
}

// Start starts a program, which the kernel kills when this process ends. The kernel sends that signal when the thread
// that started a program ends, so one thread waits for it and does nothing else.
func Start(c Command) (*Process, error) {
	command := exec.Command(c.Path, c.Args...)
	command.Env, command.Dir = c.Env, c.Dir
	command.Stdout, command.Stderr = c.Log, c.Log
	command.WaitDelay = leftover
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true, Chroot: c.Root, Credential: c.User}
	p := &Process{command: command, done: make(chan struct{})}
	started := make(chan error, 1)
	go func() {
		// Never unlocked: the thread may have entered other namespaces, and ends with this goroutine.
		runtime.LockOSThread()
		if c.Inside != nil {
			if err := c.Inside(); err != nil {
				started <- err
				return
			}
		}
		if err := command.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		p.err = command.Wait()
		// What it started itself must not outlive it either.
		_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL)
		close(p.done)
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	return p, nil
}

// Pid is the program's process id.
func (p *Process) Pid() int { return p.command.Process.Pid }

// Done is closed when the program has ended.
func (p *Process) Done() <-chan struct{} { return p.done }

// ExitCode is what the program ended with, 128 plus the number for a signal, as a container runtime tells it. It is
// valid once Done is closed.
func (p *Process) ExitCode() int {
	state := p.command.ProcessState
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return state.ExitCode()
}

// Signal sends a signal; a program that has ended already gets none.
func (p *Process) Signal(signal os.Signal) { _ = p.command.Process.Signal(signal) }

// Stop asks the program to end and kills it after the grace. It returns when the program has ended.
func (p *Process) Stop(grace time.Duration) {
	if grace > 0 {
		p.Signal(syscall.SIGTERM)
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-p.done:
			return
		case <-timer.C:
		}
	}
	p.Kill()
}

// Kill ends the program at once, as a power cut would, and returns when it has ended.
func (p *Process) Kill() {
	p.Signal(syscall.SIGKILL)
	<-p.done
}
