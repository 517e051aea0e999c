package talosnodes

import (
	"crypto/tls"
	stdx509 "crypto/x509"
	"net/http"
	"time"

	"github.com/siderolabs/crypto/x509"
)

const validity = 365 * 24 * time.Hour

// newAuthority is the one that a world's nodes believe in.
func newAuthority() (*x509.CertificateAuthority, error) {
	now := time.Now()
	return x509.NewSelfSignedCertificateAuthority(x509.ECDSA(true), x509.Organization("castle nodes"),
		x509.NotBefore(now.Add(-time.Hour)), x509.NotAfter(now.Add(validity)))
}

func certificate(authority *x509.CertificateAuthority, hosts []string) (tls.Certificate, error) {
	now := time.Now()
	pair, err := x509.NewKeyPair(authority, x509.CommonName(hosts[0]), x509.DNSNames(hosts), x509.NotBefore(now.Add(-time.Hour)),
		x509.NotAfter(now.Add(validity)), x509.ExtKeyUsage([]stdx509.ExtKeyUsage{stdx509.ExtKeyUsageServerAuth}))
	if err != nil {
		return tls.Certificate{}, err
	}
	return *pair.Certificate, nil
}

// believing is the client's side of it.
func believing(authority *x509.CertificateAuthority) *http.Transport {
	roots := stdx509.NewCertPool()
	roots.AppendCertsFromPEM(authority.CrtPEM)
	return &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}
}
