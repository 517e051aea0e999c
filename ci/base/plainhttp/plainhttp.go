// Package plainhttp is the one rule for sending credentials: over HTTPS, or over plain HTTP to this machine itself
// and to hosts that a setting names. A redirect never takes them to another server.
package plainhttp

import (
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"

	"tazlab.net/castle/ci/base/forward"
)

// Allowed tells whether credentials may go to an address. named are hosts that may get them over plain HTTP, as
// host:port; without a port, 80 is meant.
func Allowed(address *url.URL, named []string) bool {
	if address.Scheme != "http" {
		return true
	}
	host, port := address.Hostname(), address.Port()
	if port == "" {
		port = "80"
	}
	return forward.IsLoopback(host) || slices.Contains(named, net.JoinHostPort(host, port)) ||
		port == "80" && slices.Contains(named, host)
}

// SameServer is the CheckRedirect of a client whose requests carry credentials: it follows redirects on the same
// server only, and never from HTTPS to HTTP. Go's own client drops headers for another host alone, and repeats bodies
// anywhere.
func SameServer(request *http.Request, via []*http.Request) error {
	if first := via[0].URL; request.URL.Host != first.Host || request.URL.Scheme != first.Scheme {
		return fmt.Errorf("%s redirects to %s://%s, which does not get the credentials",
			first.Host, request.URL.Scheme, request.URL.Host)
	}
	if len(via) > 5 {
		return fmt.Errorf("%s redirects without end", via[0].URL.Host)
	}
	return nil
}
