package world

import (
	"crypto/tls"
	stdx509 "crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/renameio/v2"
	"github.com/siderolabs/crypto/x509"
)

const validity = 10 * 365 * 24 * time.Hour

// openAuthority reads the authority of a folder, or makes it.
func openAuthority(folder string) (*x509.CertificateAuthority, error) {
	file := filepath.Join(folder, "ca.pem")
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return newAuthority(file)
	}
	if err != nil {
		return nil, err
	}
	_, key := pem.Decode(data)
	ca, err := x509.NewCertificateAuthorityFromCertificateAndKey(&x509.PEMEncodedCertificateAndKey{Crt: data[:len(data)-len(key)], Key: key})
	if err != nil {
		return nil, fmt.Errorf("%s: reset the sandbox: %w", file, err)
	}
	return ca, nil
}

func newAuthority(file string) (*x509.CertificateAuthority, error) {
	now := time.Now()
	ca, err := x509.NewSelfSignedCertificateAuthority(x509.ECDSA(true), x509.Organization("castle sandbox"),
		x509.NotBefore(now.Add(-time.Hour)), x509.NotAfter(now.Add(validity)))
	if err != nil {
		return nil, err
	}
	// Whole or not at all: half an authority would have to be told apart from none.
	return ca, renameio.WriteFile(file, slices.Concat(ca.CrtPEM, ca.KeyPEM), 0o600)
}

// certificate is one of the authority's for a service at an address.
func certificate(ca *x509.CertificateAuthority, address netip.Addr) (*tls.Certificate, error) {
	now := time.Now()
	pair, err := x509.NewKeyPair(ca, x509.CommonName(address.String()), x509.IPAddresses([]net.IP{address.AsSlice()}),
		x509.NotBefore(now.Add(-time.Hour)), x509.NotAfter(now.Add(validity)), x509.ExtKeyUsage([]stdx509.ExtKeyUsage{stdx509.ExtKeyUsageServerAuth}))
	if err != nil {
		return nil, err
	}
	return pair.Certificate, nil
}
