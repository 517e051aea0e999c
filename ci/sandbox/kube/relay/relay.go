//go:build linux

package relay

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// dialTimeout bounds the wait for one target that drops packets.
	dialTimeout = 3 * time.Second
	// acceptPause is the rest after a failed accept, so that running out of file descriptors is no busy loop.
	acceptPause = 50 * time.Millisecond
)

// Relay is one listening address.
type Relay struct {
	listener net.Listener

	mu      sync.Mutex
	targets []netip.AddrPort
	next    int
	open    map[net.Conn]struct{}
	cut     bool
}

// Listen accepts connections on an address, which the machine need not have yet.
func Listen(address netip.AddrPort, targets ...netip.AddrPort) (*Relay, error) {
	config := net.ListenConfig{Control: FreeBind, KeepAlive: -1}
	listener, err := config.Listen(context.Background(), "tcp4", address.String())
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	r := &Relay{listener: listener, targets: targets, open: map[net.Conn]struct{}{}}
	go r.accept()
	return r, nil
}

// FreeBind lets a net.ListenConfig listen on an address that the machine does not have yet.
func FreeBind(_, _ string, raw syscall.RawConn) error {
	var failed error
	err := raw.Control(func(fd uintptr) {
		failed = unix.SetsockoptInt(int(fd), unix.IPPROTO_IP, unix.IP_FREEBIND, 1)
	})
	if err != nil {
		return err
	}
	return failed
}

// Address is where it listens.
func (r *Relay) Address() netip.AddrPort { return r.listener.Addr().(*net.TCPAddr).AddrPort() }

// SetTargets changes where new connections go.
func (r *Relay) SetTargets(targets []netip.AddrPort) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.targets = targets
}

// Refuse stops listening, so that the kernel refuses new connections; open ones stay.
func (r *Relay) Refuse() { r.listener.Close() }

// Close stops listening and cuts the open connections.
func (r *Relay) Close() {
	r.listener.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cut = true
	for conn := range r.open {
		reset(conn)
	}
}

func (r *Relay) accept() {
	for {
		conn, err := r.listener.Accept()
		if err == nil {
			go r.serve(conn)
			continue
		}
		if temporary, ok := err.(interface{ Temporary() bool }); !ok || !temporary.Temporary() {
			return
		}
		time.Sleep(acceptPause)
	}
}

func (r *Relay) serve(client net.Conn) {
	defer client.Close()
	target := r.dial()
	if target == nil {
		reset(client)
		return
	}
	defer target.Close()
	if !r.add(client, target) {
		reset(client)
		reset(target)
		return
	}
	defer r.remove(client, target)
	var copying sync.WaitGroup
	copying.Go(func() { pass(target, client) })
	pass(client, target)
	copying.Wait()
}

// dial tries each target once, beginning with the one after the last.
func (r *Relay) dial() net.Conn {
	r.mu.Lock()
	targets, first := r.targets, r.next
	r.next++
	r.mu.Unlock()
	for i := range targets {
		target := targets[(first+i)%len(targets)]
		if conn, err := net.DialTimeout("tcp4", target.String(), dialTimeout); err == nil {
			return conn
		}
	}
	return nil
}

func (r *Relay) add(conns ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cut {
		return false
	}
	for _, conn := range conns {
		r.open[conn] = struct{}{}
	}
	return true
}

func (r *Relay) remove(conns ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conn := range conns {
		delete(r.open, conn)
	}
}

// pass copies one direction and hands the end of it on. A broken connection breaks the other one too.
func pass(to, from net.Conn) {
	if _, err := io.Copy(to, from); err != nil {
		reset(to)
		reset(from)
		return
	}
	_ = to.(*net.TCPConn).CloseWrite()
}

// reset closes with a reset instead of an orderly end.
func reset(conn net.Conn) {
	_ = conn.(*net.TCPConn).SetLinger(0)
	conn.Close()
}
