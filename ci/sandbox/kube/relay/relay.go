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
	choose   Choose // nil: the targets in turn

	mu      sync.Mutex
	targets []netip.AddrPort
	next    int
}

// Listen accepts connections on an address, which the machine need not have yet.
func Listen(address netip.AddrPort, targets ...netip.AddrPort) (*Relay, error) {
	return start(address, &Relay{targets: targets})
}

// Choose tells where one connection goes, of which it reads nothing away.
type Choose func(client *net.TCPConn) (netip.AddrPort, error)

// ListenChoosing is Listen where each connection has a target of its own.
func ListenChoosing(address netip.AddrPort, choose Choose) (*Relay, error) {
	return start(address, &Relay{choose: choose})
}

func start(address netip.AddrPort, r *Relay) (*Relay, error) {
	config := net.ListenConfig{Control: FreeBind, KeepAlive: -1}
	listener, err := config.Listen(context.Background(), "tcp4", address.String())
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	ctx, cut := context.WithCancel(context.Background())
	r.listener, r.cut = listener, cut
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

// dial goes to the chosen target, or tries each once, beginning with the one after the last.
func (r *Relay) dial(ctx context.Context, client *net.TCPConn) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialTimeout}
	if r.choose != nil {
		target, err := r.choose(client)
		if err != nil {
			return nil, err
		}
		return dialer.DialContext(ctx, "tcp4", target.String())
	}
	r.mu.Lock()
	targets, first := r.targets, r.next
	r.next++
	r.mu.Unlock()
	for i := range targets {
		target := targets[(first+i)%len(targets)]
		if conn, err := dialer.DialContext(ctx, "tcp4", target.String()); err == nil {
			return conn, nil
		}
	}
	return nil, errors.New("no target answers")
}
