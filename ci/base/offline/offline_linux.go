// Package offline starts programs that reach no network. It needs no privileges: the kernel refuses the sockets, by a
// seccomp filter that the program and all that it starts inherit, where a network namespace of its own would take
// CAP_SYS_ADMIN, which no container of an engine has. Loopback is a network, too.
package offline

import (
	"fmt"
	"os/exec"
	"runtime"
	"unsafe"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Start starts a command as exec.Cmd.Start does; Wait is the caller's.
func Start(cmd *exec.Cmd) error {
	started := make(chan error, 1)
	go func() {
		// A process inherits the filter of the thread that starts it. This thread is never unlocked, and so ends here.
		runtime.LockOSThread()
		err := refuseSockets()
		if err == nil {
			err = cmd.Start()
		}
		started <- err
	}()
	return <-started
}

// Places in the seccomp_data that the filter reads, of values with the lower half first.
const (
	atNumber       = 0
	atArchitecture = 4
	atFamily       = 16
)

const (
	allow          = 0x7fff0000                            // SECCOMP_RET_ALLOW
	noNetwork      = 0x00050000 | uint32(unix.ENETUNREACH) // SECCOMP_RET_ERRNO
	notImplemented = 0x00050000 | uint32(unix.ENOSYS)      // likewise
	otherABI       = 0x40000000                            // numbers from here on are of the x32 ABI
)

var architectures = map[string]uint32{"amd64": unix.AUDIT_ARCH_X86_64, "arm64": unix.AUDIT_ARCH_AARCH64}

// refuseSockets refuses this thread, and what it starts, sockets of all families but those of the machine itself, and
// io_uring, which opens sockets past any filter. System calls of another architecture's numbers do not exist for it.
func refuseSockets() error {
	architecture, known := architectures[runtime.GOARCH]
	if !known {
		return fmt.Errorf("a program without a network cannot be started on %s", runtime.GOARCH)
	}
	filter, err := bpf.Assemble([]bpf.Instruction{
		bpf.LoadAbsolute{Off: atArchitecture, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: architecture, SkipTrue: 9},
		bpf.LoadAbsolute{Off: atNumber, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpGreaterOrEqual, Val: otherABI, SkipTrue: 7},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.SYS_IO_URING_SETUP, SkipTrue: 6},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_SOCKET, SkipTrue: 4},
		bpf.LoadAbsolute{Off: atFamily, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_UNIX, SkipTrue: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.AF_NETLINK, SkipTrue: 1}, // which addresses this machine has
		bpf.RetConstant{Val: noNetwork},
		bpf.RetConstant{Val: allow},
		bpf.RetConstant{Val: notImplemented},
	})
	if err != nil {
		return err
	}
	instructions := make([]unix.SockFilter, len(filter))
	for i, one := range filter {
		instructions[i] = unix.SockFilter{Code: one.Op, Jt: one.Jt, Jf: one.Jf, K: one.K}
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("refuse a program the network: %w", err)
	}
	program := unix.SockFprog{Len: uint16(len(instructions)), Filter: &instructions[0]}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0); err != nil {
		return fmt.Errorf("refuse a program the network: %w", err)
	}
	return nil
}
