package daggerengine

import (
	"os/exec"
	"runtime"
)

// startLocked starts a command whose parent-death signal is set and waits for it, both on one operating system thread:
// the kernel sends that signal when the thread that started the process ends, not the process.
func startLocked(command *exec.Cmd, exited chan<- error) error {
	started := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := command.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		exited <- command.Wait()
	}()
	return <-started
}
