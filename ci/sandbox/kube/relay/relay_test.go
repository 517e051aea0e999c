//go:build linux

package relay

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"syscall"
	"testing"
	"time"
)

// echo is a target that prefixes what it hears by its name, once it has heard all.
func echo(t *testing.T, name string) netip.AddrPort {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				heard, err := io.ReadAll(conn)
				if err == nil {
					_, _ = conn.Write(append([]byte(name+":"), heard...))
				}
			}()
		}
	}()
	return listener.Addr().(*net.TCPAddr).AddrPort()
}

func listen(t *testing.T, targets ...netip.AddrPort) *Relay {
	t.Helper()
	r, err := Listen(netip.MustParseAddrPort("127.0.0.1:0"), targets...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r
}

func dial(t *testing.T, r *Relay) (net.Conn, error) {
	t.Helper()
	conn, err := net.DialTimeout("tcp4", r.Address().String(), 5*time.Second)
	if err == nil {
		_ = conn.SetDeadline(time.Now().Add(10 * time.Second))
		t.Cleanup(func() { conn.Close() })
	}
	return conn, err
}

func say(t *testing.T, r *Relay, word string) (string, error) {
	t.Helper()
	conn, err := dial(t, r)
	if err != nil {
		return "", err
	}
	if _, err := conn.Write([]byte(word)); err != nil {
		return "", err
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		return "", err
	}
	heard, err := io.ReadAll(conn)
	return string(heard), err
}

func TestConnectionsGoToTheTargetsInTurnAndPastADeadOne(t *testing.T) {
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	dead := listener.Addr().(*net.TCPAddr).AddrPort()
	listener.Close()
	r := listen(t, echo(t, "a"), dead, echo(t, "b"))
	counts := map[string]int{}
	for range 9 {
		heard, err := say(t, r, "x")
		if err != nil {
			t.Fatal(err)
		}
		counts[heard]++
	}
	if counts["a:x"] == 0 || counts["b:x"] == 0 || len(counts) != 2 {
		t.Errorf("answers %v", counts)
	}
}

func TestAnOpenConnectionOutlivesARefusalButNotAClose(t *testing.T) {
	r := listen(t, echo(t, "a"))
	kept, err := dial(t, r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kept.Write([]byte("before")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // until it is accepted
	r.Refuse()
	if _, err := dial(t, r); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a new connection: %v", err)
	}
	if err := kept.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if heard, err := io.ReadAll(kept); err != nil || string(heard) != "a:before" {
		t.Errorf("the open connection: %q, %v", heard, err)
	}

	r = listen(t, echo(t, "a"))
	cut, err := dial(t, r)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cut.Write([]byte("before")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond)
	r.Close()
	if _, err := io.ReadAll(cut); !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a connection through a closed relay ends with %v", err)
	}
}

func TestAConnectionWithoutATargetIsReset(t *testing.T) {
	r := listen(t)
	if heard, err := say(t, r, "x"); err == nil {
		t.Errorf("it answers %q", heard)
	}
	r.SetTargets([]netip.AddrPort{echo(t, "late")})
	if heard, err := say(t, r, "x"); err != nil || heard != "late:x" {
		t.Errorf("with a target: %q, %v", heard, err)
	}
}
