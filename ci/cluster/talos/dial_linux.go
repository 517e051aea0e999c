package talos

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// endWhenUnheard has the kernel end a connection whose other end is gone.
func endWhenUnheard(connection net.Conn) {
	socket, is := connection.(syscall.Conn)
	if !is {
		return // of a proxy, whose connection stays
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return // it is closed already
	}
	_ = raw.Control(func(fd uintptr) {
		_ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unheard.Milliseconds())) // without, it only ends later
	})
}
