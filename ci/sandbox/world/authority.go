package world

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"
)

// authority signs the certificates of the world's services. It is made with the world, and stays as long as that does.
type authority struct {
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

const validity = 10 * 365 * 24 * time.Hour

// openAuthority reads the authority of a folder, or makes it.
func openAuthority(folder string) (*authority, error) {
	file := filepath.Join(folder, "ca.pem")
	data, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return newAuthority(file)
	}
	if err != nil {
		return nil, err
	}
	certificate, rest := pem.Decode(data)
	key, _ := pem.Decode(rest)
	if certificate == nil || key == nil {
		return nil, fmt.Errorf("%s holds no certificate and key: reset the sandbox", file)
	}
	a := &authority{}
	if a.certificate, err = x509.ParseCertificate(certificate.Bytes); err == nil {
		a.key, err = x509.ParseECPrivateKey(key.Bytes)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: reset the sandbox: %w", file, err)
	}
	return a, nil
}

func newAuthority(file string) (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "castle sandbox"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(validity),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	data := append(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private})...)
	// Whole or not at all: half an authority would have to be told apart from none.
	if err := os.WriteFile(file+".new", data, 0o600); err != nil {
		return nil, err
	}
	return &authority{certificate, key}, os.Rename(file+".new", file)
}

// pem is the authority's certificate.
func (a *authority) pem() string {
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.certificate.Raw}))
}

// server is the TLS configuration of a service at an address.
func (a *authority) server(address netip.Addr) (*tls.Config, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: address.String()}, IPAddresses: []net.IP{address.AsSlice()},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(validity),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}, nil
}
