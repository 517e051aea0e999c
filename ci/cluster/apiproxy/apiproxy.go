// Package apiproxy stands between the tools of the layers and the cluster's API. An API server that restarts refuses connections for seconds,
// and OpenTofu's providers for Helm and Kubernetes fail at the first: the chart that was being installed, and with it the layer. Here such a
// request waits, as castle's own waits do.
//
// It listens on the loopback interface, with certificates that nobody has before or after it: who may ask are the processes that were given its
// Environment.
package apiproxy

import (
	"context"
	"crypto/tls"
	stdx509 "crypto/x509"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"time"

	"github.com/siderolabs/crypto/x509"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/cluster/kube"
)

// Options say how long a request waits, and who is told.
type Options struct {
	// Patience is for how long the API may be out of reach without a break. After that, requests fail at the first try until it answers again.
	Patience time.Duration
	// Waits is told why, at each try of a request that has to wait; Over that the API answers again, or with an error that the patience is at
	// its end. They are called one at a time.
	Waits func(seen string)
	Over  func(err error)
}

// Proxy serves until it is closed.
type Proxy struct {
	server *http.Server
	ended  chan struct{}
	values map[string]string
}

// Start listens, and serves what is asked with the credentials that the environment holds.
func Start(api *kube.Client, options Options) (*Proxy, error) {
	target, err := url.Parse(api.Config().Host)
	if err != nil {
		return nil, err
	}
	config := api.Config()
	config.NextProtos = nil // HTTP/2: an API server that ends says which requests it has not acted on, and these are sent anew
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, err
	}
	identity, err := newIdentity()
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &Proxy{ended: make(chan struct{}), values: map[string]string{
		kube.HostVariable: "https://" + listener.Addr().String(), kube.CAVariable: string(identity.authority),
		kube.ClientCertVariable: string(identity.client.Crt), kube.ClientKeyVariable: string(identity.client.Key),
	}}
	p.server = &http.Server{
		Handler: &httputil.ReverseProxy{
			Rewrite:       func(request *httputil.ProxyRequest) { request.SetURL(target) },
			Transport:     &patient{transport: transport, options: options},
			FlushInterval: -1, // a watch tells of a change when it comes
			ErrorLog:      log.New(io.Discard, "", 0),
			ErrorHandler:  unavailable,
		},
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{identity.server}, ClientCAs: identity.pool, ClientAuth: tls.RequireAndVerifyClientCert,
		},
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0),
	}
	go func() {
		defer close(p.ended)
		_ = p.server.ServeTLS(listener, "", "") // until it is closed
	}()
	return p, nil
}

// Environment names the API to a tool by the variables that kube.FromEnv and the providers read. The key in it is redacted from now on.
func (p *Proxy) Environment() map[string]string { return p.values }

// Close ends all requests.
func (p *Proxy) Close() {
	_ = p.server.Close()
	<-p.ended
}

// unavailable tells a tool in the API's own form why there is no answer.
func unavailable(w http.ResponseWriter, request *http.Request, err error) {
	if errors.Is(err, context.Canceled) {
		return // whoever asked has gone
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusServiceUnavailable)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure,
		Reason: metav1.StatusReasonServiceUnavailable, Code: http.StatusServiceUnavailable, Message: "the API does not answer: " + err.Error(),
	})
}

// identity is how proxy and tools know each other.
type identity struct {
	authority []byte // PEM
	pool      *stdx509.CertPool
	server    tls.Certificate
	client    *x509.PEMEncodedCertificateAndKey
}

// lifetime is longer than any run.
const lifetime = 24 * time.Hour

func newIdentity() (identity, error) {
	valid := []x509.Option{x509.NotBefore(time.Now().Add(-time.Minute)), x509.NotAfter(time.Now().Add(lifetime))}
	authority, err := x509.NewSelfSignedCertificateAuthority(append(valid, x509.ECDSA(true))...)
	if err != nil {
		return identity{}, err
	}
	pair := func(usage stdx509.ExtKeyUsage, more ...x509.Option) (*x509.PEMEncodedCertificateAndKey, error) {
		pair, err := x509.NewKeyPair(authority, append(append(more, valid...), x509.KeyUsage(stdx509.KeyUsageDigitalSignature), x509.ExtKeyUsage([]stdx509.ExtKeyUsage{usage}))...)
		if err != nil {
			return nil, err
		}
		return x509.NewCertificateAndKeyFromKeyPair(pair), nil
	}
	server, err := pair(stdx509.ExtKeyUsageServerAuth, x509.IPAddresses([]net.IP{net.IPv4(127, 0, 0, 1)}))
	if err != nil {
		return identity{}, err
	}
	client, err := pair(stdx509.ExtKeyUsageClientAuth)
	if err != nil {
		return identity{}, err
	}
	redact.Add(string(client.Key))
	made := identity{authority: authority.CrtPEM, pool: stdx509.NewCertPool(), client: client}
	made.pool.AddCert(authority.Crt)
	made.server, err = tls.X509KeyPair(server.Crt, server.Key)
	return made, err
}
