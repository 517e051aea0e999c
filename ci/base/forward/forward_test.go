package forward

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tazlab.net/castle/ci/base/porttest"
)

// freeAddress is a loopback address nobody listens on, under the given host.
func freeAddress(t *testing.T, host string) string {
	t.Helper()
	return net.JoinHostPort(host, strconv.Itoa(porttest.Free(t, "127.0.0.1")))
}

// target serves every connection with handle and returns its address.
func target(t *testing.T, handle func(*net.TCPConn)) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
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
				handle(conn.(*net.TCPConn))
			}()
		}
	}()
	return listener.Addr().String()
}

func start(t *testing.T, rules ...Rule) (stop func()) {
	t.Helper()
	stop, err := Start(t.Context(), rules...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return stop
}

func dial(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(10 * time.Second)); err != nil {
		t.Fatal(err)
	}
	return conn.(*net.TCPConn)
}

func TestAnAnswerArrivesAfterTheClientClosedItsHalf(t *testing.T) {
	address := target(t, func(conn *net.TCPConn) {
		request, err := io.ReadAll(conn) // returns only when the client's end of data came through
		if err != nil {
			return
		}
		io.WriteString(conn, strings.ToUpper(string(request)))
	})
	rule := Rule{Listen: freeAddress(t, "localhost"), Target: address}
	start(t, rule)

	client := dial(t, rule.Listen)
	io.WriteString(client, "hello")
	if err := client.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer, err := io.ReadAll(client)
	if err != nil || string(answer) != "HELLO" {
		t.Fatalf("answer = %q, %v; want HELLO", answer, err)
	}
}

func TestTheTargetMayCloseItsHalfFirst(t *testing.T) {
	received := make(chan string, 1)
	address := target(t, func(conn *net.TCPConn) {
		io.WriteString(conn, "greeting")
		conn.CloseWrite()
		rest, _ := io.ReadAll(conn)
		received <- string(rest)
	})
	rule := Rule{Listen: freeAddress(t, "127.0.0.1"), Target: address}
	start(t, rule)

	client := dial(t, rule.Listen)
	greeting, err := io.ReadAll(client)
	if err != nil || string(greeting) != "greeting" {
		t.Fatalf("greeting = %q, %v", greeting, err)
	}
	io.WriteString(client, "still here")
	client.CloseWrite()
	if got := <-received; got != "still here" {
		t.Fatalf("target received %q after closing its half", got)
	}
}

func TestAnUnreachableTargetResetsTheClientInsteadOfAnsweringNothing(t *testing.T) {
	rule := Rule{Listen: freeAddress(t, "127.0.0.1"), Target: freeAddress(t, "127.0.0.1")}
	start(t, rule)

	conn, err := net.DialTimeout("tcp", rule.Listen, 10*time.Second)
	if err == nil { // else the reset was faster than the dial, which is as clear to a client
		defer conn.Close()
		_, err = io.ReadAll(conn)
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("error = %v; want connection reset", err)
	}
}

func TestABrokenTargetBreaksTheClient(t *testing.T) {
	address := target(t, func(conn *net.TCPConn) {
		io.ReadFull(conn, make([]byte, 1))
		reset(conn)
	})
	rule := Rule{Listen: freeAddress(t, "127.0.0.1"), Target: address}
	start(t, rule)

	client := dial(t, rule.Listen)
	io.WriteString(client, "x")
	if _, err := io.ReadAll(client); !errors.Is(err, syscall.ECONNRESET) {
		t.Fatalf("error = %v; want connection reset", err)
	}
}

func TestStopCutsOpenConnectionsAndFreesTheAddress(t *testing.T) {
	address := target(t, func(conn *net.TCPConn) { io.Copy(conn, conn) })
	rule := Rule{Listen: freeAddress(t, "127.0.0.1"), Target: address}
	stop := start(t, rule)

	client := dial(t, rule.Listen)
	io.WriteString(client, "x")
	if _, err := io.ReadFull(client, make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	stop()
	if _, err := client.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the connection is open after stop: %v", err)
	}
	listener, err := net.Listen("tcp", rule.Listen)
	if err != nil {
		t.Fatalf("the address is still taken after stop: %v", err)
	}
	listener.Close()
}

func TestTheEndOfTheContextStopsTheForwarding(t *testing.T) {
	address := target(t, func(conn *net.TCPConn) { io.Copy(conn, conn) })
	rule := Rule{Listen: freeAddress(t, "127.0.0.1"), Target: address}
	ctx, cancel := context.WithCancel(t.Context())
	stop, err := Start(ctx, rule)
	if err != nil {
		t.Fatal(err)
	}
	client := dial(t, rule.Listen)
	cancel()
	if _, err := client.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the connection outlived its context: %v", err)
	}
	stop()
}

func TestWhenOneAddressIsTakenNoneIsServed(t *testing.T) {
	taken := target(t, func(*net.TCPConn) {})
	free := freeAddress(t, "127.0.0.1")
	_, err := Start(t.Context(), Rule{Listen: free, Target: taken}, Rule{Listen: taken, Target: free})
	if !errors.Is(err, syscall.EADDRINUSE) || !strings.Contains(err.Error(), taken) {
		t.Fatalf("error = %v; want one that names %s as in use", err, taken)
	}
	if conn, err := net.Dial("tcp", free); err == nil {
		conn.Close()
		t.Fatal("the first address is served although the second failed")
	}
}

func TestParse(t *testing.T) {
	for _, test := range []struct{ name, spec, wantErr string }{
		{"a name for loopback is accepted", "localhost:5000=registry:5000", ""},
		{"a loopback address is accepted", "127.0.0.2:80=10.0.0.1:8080", ""},
		{"IPv6 loopback is accepted", "[::1]:80=[fd00::1]:8080", ""},
		{"an address open to the network is refused", "0.0.0.0:80=registry:5000", "not a loopback address"},
		{"a host name is refused as an address to listen on", "registry:80=registry:5000", "not a loopback address"},
		{"a missing target is refused", "localhost:80", "want LISTEN=TARGET"},
		{"an empty target is refused", "localhost:80=", "want HOST:PORT"},
		{"a target without a host is refused", "localhost:80=:5000", "no host"},
		{"port 0 is refused", "localhost:0=registry:5000", "1 to 65535"},
		{"a port beyond 65535 is refused", "localhost:80=registry:65536", "1 to 65535"},
		{"a named port is refused", "localhost:http=registry:80", "1 to 65535"},
	} {
		t.Run(test.name, func(t *testing.T) {
			rule, err := Parse(test.spec)
			if test.wantErr == "" {
				if err != nil || rule.String() != test.spec {
					t.Fatalf("rule %v, error %v", rule, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), test.wantErr) || !strings.Contains(err.Error(), test.spec) {
				t.Fatalf("error = %v; want one that names the rule and contains %q", err, test.wantErr)
			}
		})
	}
}
