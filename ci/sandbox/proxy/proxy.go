// Package proxy lets a container that has no route to the proving ground's network reach it: an HTTP proxy that forwards
// plain requests and tunnels the rest by CONNECT. It serves the addresses of one network only and keeps no log.
package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"sync"
	"time"
)

// dialTime is how long a target may take to accept a connection, all within one machine.
const dialTime = 5 * time.Second

// Proxy forwards to the addresses of some networks.
type Proxy struct {
	Networks []netip.Prefix
	// Dial connects; nil means a plain TCP connection.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	once    sync.Once
	forward *httputil.ReverseProxy
}

func (p *Proxy) dial(ctx context.Context, network, address string) (net.Conn, error) {
	if p.Dial != nil {
		return p.Dial(ctx, network, address)
	}
	// A machine without power drops packets; the kernel alone would try for two minutes.
	dialer := net.Dialer{Timeout: dialTime}
	return dialer.DialContext(ctx, network, address)
}

func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if err := p.allowed(r); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	if r.Method == http.MethodConnect {
		p.tunnel(w, r)
		return
	}
	p.once.Do(func() {
		p.forward = &httputil.ReverseProxy{
			Rewrite:       func(*httputil.ProxyRequest) {}, // the request names its target already
			Transport:     &http.Transport{DialContext: p.dial, Proxy: nil, IdleConnTimeout: time.Minute},
			FlushInterval: -1, // watches must not wait for a full buffer
			ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
				http.Error(w, err.Error(), http.StatusBadGateway)
			},
		}
	})
	p.forward.ServeHTTP(w, r)
}

func (p *Proxy) allowed(r *http.Request) error {
	host := r.Host
	if r.URL.Host != "" {
		host = r.URL.Host
	}
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return fmt.Errorf("%s is no address: the proving ground has no names", host)
	}
	for _, network := range p.Networks {
		if network.Contains(address) {
			return nil
		}
	}
	return fmt.Errorf("%s is not in the proving ground's network", address)
}

// tunnel joins the client with the target until both have said all they had to say.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	target, err := p.dial(r.Context(), "tcp", r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	defer target.Close()
	hijacker, ok := w.(http.Hijacker)
	if !ok {
		http.Error(w, "CONNECT needs HTTP/1.1", http.StatusHTTPVersionNotSupported)
		return
	}
	client, buffered, err := hijacker.Hijack()
	if err != nil {
		return
	}
	defer client.Close()
	if _, err := io.WriteString(client, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_, _ = io.Copy(target, buffered) // what the client sent right behind its request is in the buffer
		closeWrite(target)
	}()
	_, err = io.Copy(client, target)
	closeWrite(client)
	if err != nil && !errors.Is(err, net.ErrClosed) {
		client.Close() // the client went: do not wait for it
	}
	<-done
}

func closeWrite(connection net.Conn) {
	if half, ok := connection.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
}
