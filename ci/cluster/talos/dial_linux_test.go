package talos

import (
	"net"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestAConnectionEndsWhoseOtherEndIsGone(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	connection, err := Reach(t.Context(), listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer connection.Close()
	raw, err := connection.(syscall.Conn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	limit := 0
	if controlled := raw.Control(func(fd uintptr) { limit, err = unix.GetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT) }); controlled != nil || err != nil {
		t.Fatal(controlled, err)
	}
	if limit != int(unheard.Milliseconds()) {
		t.Errorf("it ends after %d ms", limit)
	}
}
