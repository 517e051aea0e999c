package environment

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// peerOf reads who is at the other end: from the kernel, and from the part of /proc that everybody may read.
func peerOf(connection *net.UnixConn) (found peer, err error) {
	raw, err := connection.SyscallConn()
	if err != nil {
		return found, err
	}
	var credentials *unix.Ucred
	var credentialsErr error
	err = raw.Control(func(fd uintptr) {
		credentials, credentialsErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err != nil {
		return found, err
	}
	if credentialsErr != nil {
		return found, credentialsErr
	}
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", credentials.Pid))
	if err != nil {
		return found, err
	}
	defer file.Close()
	found = peer{pid: int(credentials.Pid), parent: -1, tracer: -1}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), ":")
		number, err := strconv.Atoi(strings.TrimSpace(value))
		switch {
		case name == "PPid" && err == nil:
			found.parent = number
		case name == "TracerPid" && err == nil:
			found.tracer = number
		}
	}
	return found, nil
}
