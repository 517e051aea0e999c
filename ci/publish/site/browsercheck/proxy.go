package browsercheck

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/siderolabs/crypto/x509"
)

// judged are the headers whose effect is looked for; the front without headers takes them off.
var judged = []string{
	"Content-Security-Policy", "Content-Security-Policy-Report-Only", "Cross-Origin-Embedder-Policy", "Cross-Origin-Opener-Policy",
	"Cross-Origin-Resource-Policy", "Permissions-Policy", "Referrer-Policy", "Strict-Transport-Security", "X-Content-Type-Options",
	"X-Frame-Options",
}

// front is the site at its own address, for one browser: a proxy on the loopback interface that asks the server, and speaks
// HTTPS where the site's address does.
type front struct {
	base     *url.URL // what the site is built for
	listener net.Listener
	server   *http.Server
	key      string // hash of the certificate's key, as Chromium wants it; "" without HTTPS
}

// openFront listens. With bare, the judged headers are taken off.
func openFront(server, base *url.URL, bare bool) (*front, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	prefix := strings.TrimSuffix(base.Path, "/")
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(server)
		},
		ModifyResponse: func(response *http.Response) error {
			if bare {
				for _, name := range judged {
					response.Header.Del(name)
				}
			}
			return keepInside(response, server, base)
		},
		// A browser that closes a tab leaves requests behind: no news.
		ErrorLog: log.New(io.Discard, "", 0),
	}
	f := &front{base: base, listener: listener, server: &http.Server{
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0),
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !strings.HasPrefix(r.URL.Path, prefix+"/") {
				http.Error(w, "outside of the site's base URL", http.StatusNotFound)
				return
			}
			proxy.ServeHTTP(w, r)
		}),
	}}
	serve := f.server.Serve
	if base.Scheme == "https" {
		certificate, err := selfSigned(base.Hostname())
		if err != nil {
			return nil, fmt.Errorf("make a certificate: %w", err)
		}
		sum := sha256.Sum256(certificate.Leaf.RawSubjectPublicKeyInfo)
		f.key = base64.StdEncoding.EncodeToString(sum[:])
		f.server.TLSConfig = &tls.Config{Certificates: []tls.Certificate{certificate}}
		serve = func(l net.Listener) error { return f.server.ServeTLS(l, "", "") }
	}
	go func() { _ = serve(listener) }() // ends with close
	return f, nil
}

// keepInside makes a redirect that names the server, or a path on it, lead to the site's own address.
func keepInside(response *http.Response, server, base *url.URL) error {
	location, err := response.Location()
	if err != nil || location.Host != server.Host {
		return nil // no redirect, or one to elsewhere
	}
	location.Scheme, location.Host = base.Scheme, base.Host
	response.Header.Set("Location", location.String())
	return nil
}

func (f *front) close() { _ = f.server.Close() }

// rules tell Chromium where the site's host is; offline, no other host is anywhere.
func (f *front) rules(offline bool) string {
	port := f.base.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[f.base.Scheme]
	}
	rules := fmt.Sprintf("MAP %s %s", net.JoinHostPort(f.base.Hostname(), port), f.listener.Addr())
	if offline {
		rules += ", MAP * ~NOTFOUND"
	}
	return rules
}

// selfSigned is a certificate that only the browser that is told its key believes.
func selfSigned(host string) (tls.Certificate, error) {
	now := time.Now()
	made, err := x509.NewSelfSignedCertificateAuthority(x509.ECDSA(true), x509.DNSNames([]string{host}),
		x509.NotBefore(now.Add(-time.Hour)), x509.NotAfter(now.Add(24*time.Hour)))
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(made.CrtPEM, made.KeyPEM)
}

// probe asks the server for the home page, so that one that is not there is said once, and returns the policy.
func probe(ctx context.Context, server *url.URL) (policy string, err error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.JoinPath("/").String(), nil)
	if err != nil {
		return "", err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", fmt.Errorf("the site is not served: %w", err)
	}
	defer response.Body.Close()
	return response.Header.Get("Content-Security-Policy"), nil
}
