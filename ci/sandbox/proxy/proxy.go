// Package proxy lets a container that has no route to the proving ground's network reach it: an HTTP proxy that forwards
// plain requests and tunnels the rest by CONNECT. It serves the addresses of one network only and keeps no log.
package proxy

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"sync"
	"time"

	"tazlab.net/castle/ci/base/forward"
)

// dialTime is how long a target may take to accept a connection, all within one machine.
const dialTime = 5 * time.Second

// Proxy forwards to the addresses of some networks.
type Proxy struct {
	Networks []netip.Prefix

	once    sync.Once
	forward *httputil.ReverseProxy
}

// dialer does not wait for a machine without power, which drops packets: the kernel alone would try for two minutes.
var dialer = net.Dialer{Timeout: dialTime}

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
			Transport:     &http.Transport{DialContext: dialer.DialContext, Proxy: nil, IdleConnTimeout: time.Minute},
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
	target, err := dialer.DialContext(r.Context(), "tcp", r.Host)
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
	// What the client sent right behind its request was read with it.
	if _, err := io.CopyN(target, buffered, int64(buffered.Reader.Buffered())); err != nil {
		return
	}
	forward.Join(context.Background(), client.(*net.TCPConn), target.(*net.TCPConn))
}
