// Package forward copies TCP connections to another address, and never looks at what it carries. Start listens on loopback
// addresses, and on no others, so that a name such as localhost:5000 means the same inside a container as outside.
package forward

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// dialDeadline bounds the wait for a target that drops packets.
const dialDeadline = 10 * time.Second

// Rule says that connections to Listen, a loopback host:port, go to Target, any host:port.
type Rule struct {
	Listen string
	Target string
}

// Parse reads "listen=target", for example "localhost:5000=registry:5000".
func Parse(spec string) (Rule, error) {
	listen, target, ok := strings.Cut(spec, "=")
	if !ok {
		return Rule{}, fmt.Errorf("forward rule %q: want LISTEN=TARGET, for example localhost:5000=registry:5000", spec)
	}
	rule := Rule{Listen: strings.TrimSpace(listen), Target: strings.TrimSpace(target)}
	if err := rule.validate(); err != nil {
		return Rule{}, fmt.Errorf("forward rule %q: %w", spec, err)
	}
	return rule, nil
}

func (r Rule) String() string { return r.Listen + "=" + r.Target }

// IsLoopback tells whether a host, without its port, is this machine itself: localhost, or an address of 127.0.0.0/8 or ::1.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func (r Rule) validate() error {
	host, err := splitHostPort(r.Listen)
	if err != nil {
		return err
	}
	if !IsLoopback(host) {
		return fmt.Errorf("%s is not a loopback address: use localhost or an address of 127.0.0.0/8 or ::1", host)
	}
	_, err = splitHostPort(r.Target)
	return err
}

func splitHostPort(address string) (host string, err error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("address %q: want HOST:PORT", address)
	}
	if host == "" {
		return "", fmt.Errorf("address %q has no host", address)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("address %q: port %q is not a number from 1 to 65535", address, port)
	}
	return host, nil
}

// Start listens for every rule and returns when all addresses accept connections. It serves until ctx ends or stop is
// called; stop cuts the open connections and returns when nothing of it runs any more. When one address cannot be had,
// none is served. A target that cannot be reached is logged and its client's connection is reset.
func Start(ctx context.Context, rules ...Rule) (stop func(), err error) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	stop = func() {
		cancel()
		running.Wait()
	}
	for _, rule := range rules {
		listeners, err := rule.listen(ctx)
		for _, listener := range listeners {
			running.Go(func() { Serve(ctx, listener, rule.dial) })
		}
		if err != nil {
			stop()
			return nil, fmt.Errorf("forward %s: %w", rule, err)
		}
	}
	return stop, nil
}

// listen opens the rule's address; localhost is both loopback addresses, as clients may try either, but IPv6 only where the
// machine has it.
func (r Rule) listen(ctx context.Context) ([]net.Listener, error) {
	if err := r.validate(); err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(r.Listen)
	if err != nil {
		return nil, err
	}
	hosts := []string{host}
	if host == "localhost" {
		hosts = []string{"127.0.0.1", "::1"}
	}
	var config net.ListenConfig
	var listeners []net.Listener
	for i, host := range hosts {
		listener, err := config.Listen(ctx, "tcp", net.JoinHostPort(host, port))
		if err != nil {
			noIPv6 := errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT)
			if i > 0 && noIPv6 {
				continue
			}
			return listeners, err
		}
		listeners = append(listeners, listener)
	}
	return listeners, nil
}

func (r Rule) dial(ctx context.Context, _ *net.TCPConn) (net.Conn, error) {
	dialer := net.Dialer{Timeout: dialDeadline}
	conn, err := dialer.DialContext(ctx, "tcp", r.Target)
	if err != nil {
		slog.WarnContext(ctx, "forward: target not reachable", "rule", r.String(), "error", err)
	}
	return conn, err
}
