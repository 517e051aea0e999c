//go:build !unix

package git

import (
	"os/exec"
	"time"
)

// endGroup leaves the default, which is to kill the command alone: there are no process groups here.
func endGroup(*exec.Cmd, time.Duration) (release func()) { return func() {} }
