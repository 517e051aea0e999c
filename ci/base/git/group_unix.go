//go:build unix

package git

import (
	"os/exec"
	"syscall"
	"time"
)

// endGroup gives the command a process group of its own, so that a deadline also ends its helpers (git-remote-https, ssh):
// with SIGTERM, on which git removes its lock files, and after a grace period with SIGKILL. Call release when the command
// has ended.
func endGroup(cmd *exec.Cmd, grace time.Duration) (release func()) {
	var kill *time.Timer
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error {
		group := -cmd.Process.Pid
		kill = time.AfterFunc(grace, func() { _ = syscall.Kill(group, syscall.SIGKILL) })
		return syscall.Kill(group, syscall.SIGTERM)
	}
	return func() {
		if kill != nil {
			kill.Stop()
		}
	}
}
