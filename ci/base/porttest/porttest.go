// Package porttest gives tests ports that no kernel gives away by itself: one of those, free a moment ago, may be a connection's of any other process by now.
package porttest

import (
	"errors"
	"math/rand/v2"
	"net"
	"strconv"
	"syscall"
	"testing"
)

// Linux gives away ports from after on (net.ipv4.ip_local_port_range).
const first, after = 20000, 32768

// Listen listens at such a port of an address, by TCP.
func Listen(t testing.TB, host string) net.Listener {
	t.Helper()
	for {
		listener, err := net.Listen("tcp4", net.JoinHostPort(host, strconv.Itoa(first+rand.N(after-first))))
		switch {
		case err == nil:
			return listener
		case !errors.Is(err, syscall.EADDRINUSE):
			t.Fatal(err)
		}
	}
}

// Free is such a port of an address at which nobody listens.
func Free(t testing.TB, host string) int {
	t.Helper()
	listener := Listen(t, host)
	defer listener.Close()
	return listener.Addr().(*net.TCPAddr).Port
}
