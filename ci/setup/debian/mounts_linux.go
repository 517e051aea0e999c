package debian

import "syscall"

// ownMounts starts a process in a mount namespace of its own. What mmdebstrap mounts below a root (proc, sys, dev) then
// vanishes with it however it ends, and removing its folder can never reach through such a mount.
func ownMounts() *syscall.SysProcAttr { return &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS} }
