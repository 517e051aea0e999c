package kubetest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// pki is a certificate authority and what it issued.
type pki struct {
	folder    string
	ca        *x509.Certificate
	caKey     *ecdsa.PrivateKey
	caCert    []byte // PEM, as all below
	adminCert []byte
	adminKey  []byte
}

func newPKI(folder string) (*pki, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "kubetest"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	p := &pki{folder: folder, caKey: key}
	p.ca = template
	if p.caCert, err = p.sign(template, key); err != nil {
		return nil, err
	}
	block, _ := pem.Decode(p.caCert)
	if p.ca, err = x509.ParseCertificate(block.Bytes); err != nil {
		return nil, err
	}
	serverCert, serverKey, err := p.server("127.0.0.1")
	if err != nil {
		return nil, err
	}
	if p.adminCert, p.adminKey, err = p.client("admin", "system:masters"); err != nil {
		return nil, err
	}
	for name, data := range map[string][]byte{"ca.crt": p.caCert, "server.crt": serverCert, "server.key": serverKey} {
		if err := os.WriteFile(p.file(name), data, 0o600); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *pki) file(name string) string { return filepath.Join(p.folder, name) }

// server issues a serving certificate for an address.
func (p *pki) server(address string) (cert, key []byte, err error) {
	return p.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: address},
		IPAddresses: []net.IP{net.ParseIP(address)},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	})
}

func (p *pki) client(user string, groups ...string) (cert, key []byte, err error) {
	return p.issue(&x509.Certificate{
		Subject:     pkix.Name{CommonName: user, Organization: groups},
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	})
}

func (p *pki) issue(template *x509.Certificate) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	cert, err = p.sign(template, private)
	return cert, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}), err
}

func (p *pki) sign(template *x509.Certificate, key *ecdsa.PrivateKey) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, template, p.ca, key.Public(), p.caKey)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

func (p *pki) adminTLS() *tls.Config {
	roots := x509.NewCertPool()
	roots.AddCert(p.ca)
	certificate, err := tls.X509KeyPair(p.adminCert, p.adminKey)
	if err != nil {
		return &tls.Config{RootCAs: roots}
	}
	return &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{certificate}}
}

// ServerTLS is what a server needs that the API server shall trust, on 127.0.0.1.
func (s *Server) ServerTLS() *tls.Config {
	s.t.Helper()
	cert, key, err := s.pki.server("127.0.0.1")
	if err != nil {
		s.t.Fatal(err)
	}
	certificate, err := tls.X509KeyPair(cert, key)
	if err != nil {
		s.t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{certificate}}
}

// CA is the authority's certificate, PEM.
func (s *Server) CA() []byte { return s.pki.caCert }

// NewCA makes the certificate, PEM, of an authority that nothing trusts.
func NewCA(t testing.TB) []byte {
	t.Helper()
	p, err := newPKI(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return p.caCert
}
