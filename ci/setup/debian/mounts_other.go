//go:build !linux

package debian

import "syscall"

// ownMounts is for Linux; elsewhere no root is made.
func ownMounts() *syscall.SysProcAttr { return &syscall.SysProcAttr{} }
