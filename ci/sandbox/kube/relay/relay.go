//go:build linux

package relay

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tazlab.net/castle/ci/base/forward"
)

// dialTimeout bounds the wait for one target that drops packets.
const dialTimeout = 3 * time.Second

// Relay is one listening address.
type Relay struct {
	listener net.Listener
	cut      context.CancelFunc
	running  sync.WaitGroup

	mu      sync.Mutex
	targets []netip.AddrPort
	next    int
}

// Listen accepts connections on an address, which the machine need not have yet.
func Listen(address netip.AddrPort, targets ...netip.AddrPort) (*Relay, error) {
	config := net.ListenConfig{Control: FreeBind, KeepAlive: -1}
	listener, err := config.Listen(context.Background(), "tcp4", address.String())
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	ctx, cut := context.WithCancel(context.Background())
	r := &Relay{listener: listener, cut: cut, targets: targets}
	r.running.Go(func() { forward.Serve(ctx, listener, r.dial) })
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
	r.cut()
	r.running.Wait()
}

// dial tries each target once, beginning with the one after the last.
func (r *Relay) dial(ctx context.Context) (net.Conn, error) {
	r.mu.Lock()
	targets, first := r.targets, r.next
	r.next++
	r.mu.Unlock()
	dialer := net.Dialer{Timeout: dialTimeout}
	for i := range targets {
		target := targets[(first+i)%len(targets)]
		if conn, err := dialer.DialContext(ctx, "tcp4", target.String()); err == nil {
			return conn, nil
		}
	}
	return nil, errors.New("no target answers")
}
