package kubetest

import (
	"crypto/tls"
	stdx509 "crypto/x509"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/siderolabs/crypto/x509"
)

// pki is a certificate authority and what it issued.
type pki struct {
	folder string
	ca     *x509.CertificateAuthority
	admin  *x509.KeyPair
}

func newPKI(folder string) (*pki, error) {
	ca, err := newAuthority()
	if err != nil {
		return nil, err
	}
	p := &pki{folder: folder, ca: ca}
	server, err := p.server("127.0.0.1")
	if err != nil {
		return nil, err
	}
	if p.admin, err = p.client("admin", "system:masters"); err != nil {
		return nil, err
	}
	for name, data := range map[string][]byte{"ca.crt": ca.CrtPEM, "server.crt": server.CrtPEM, "server.key": server.KeyPEM} {
		if err := os.WriteFile(p.file(name), data, 0o600); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func newAuthority() (*x509.CertificateAuthority, error) {
	return x509.NewSelfSignedCertificateAuthority(append(life(), x509.ECDSA(true), x509.Organization("kubetest"))...)
}

// life is that of every certificate: a test's day.
func life() []x509.Option {
	now := time.Now()
	return []x509.Option{x509.NotBefore(now.Add(-time.Hour)), x509.NotAfter(now.Add(24 * time.Hour))}
}

func (p *pki) file(name string) string { return filepath.Join(p.folder, name) }

// server issues a serving certificate for an address.
func (p *pki) server(address string) (*x509.KeyPair, error) {
	return x509.NewKeyPair(p.ca, append(life(), x509.CommonName(address), x509.IPAddresses([]net.IP{net.ParseIP(address)}),
		x509.ExtKeyUsage([]stdx509.ExtKeyUsage{stdx509.ExtKeyUsageServerAuth}))...)
}

func (p *pki) client(user string, groups ...string) (*x509.KeyPair, error) {
	return x509.NewKeyPair(p.ca, append(life(), x509.CommonName(user), x509.Organization(groups...),
		x509.ExtKeyUsage([]stdx509.ExtKeyUsage{stdx509.ExtKeyUsageClientAuth}))...)
}

func (p *pki) adminTLS() *tls.Config {
	roots := stdx509.NewCertPool()
	roots.AddCert(p.ca.Crt)
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{*p.admin.Certificate}}
}

// ServerTLS is what a server needs that the API server shall trust, on 127.0.0.1.
func (s *Server) ServerTLS() *tls.Config {
	s.t.Helper()
	pair, err := s.pki.server("127.0.0.1")
	if err != nil {
		s.t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{*pair.Certificate}}
}

// CA is the authority's certificate, PEM.
func (s *Server) CA() []byte { return s.pki.ca.CrtPEM }

// NewCA makes the certificate, PEM, of an authority that nothing trusts.
func NewCA(t testing.TB) []byte {
	t.Helper()
	ca, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	return ca.CrtPEM
}
