package postrender

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"time"
)

// Files of the Secret, as External Secrets Operator and MetalLB name them.
const (
	authorityFile    = "ca.crt"
	authorityKeyFile = "ca.key"
	certificateFile  = "tls.crt"
	keyFile          = "tls.key"
)

// validity is how long authority and certificate are good for: what the programs' own controllers give them.
const validity = 10 * 365 * 24 * time.Hour

func complete(data map[string][]byte) bool {
	for _, file := range []string{authorityFile, authorityKeyFile, certificateFile, keyFile} {
		if len(data[file]) == 0 {
			return false
		}
	}
	return true
}

// newCertificate makes an authority of a name and an organization, and a server's certificate of it for a DNS name.
func newCertificate(name, organization, dnsName string) (map[string][]byte, error) {
	// The programs' own controllers read the authority's key as PKCS #1 when they renew the certificate, which is RSA only. The
	// server's key can be of the kind that is made at once. Two kinds under one authority are more than siderolabs/crypto signs.
	authorityKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	keyDER, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, err
	}
	// A clock that is a little behind accepts them, too.
	begin := time.Now().Add(-time.Hour)
	authority := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name, Organization: []string{organization}},
		DNSNames: []string{name}, NotBefore: begin, NotAfter: begin.Add(validity),
		KeyUsage:              x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment | x509.KeyUsageCertSign,
		BasicConstraintsValid: true, IsCA: true,
	}
	server := &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: dnsName},
		DNSNames: []string{dnsName}, NotBefore: begin, NotAfter: begin.Add(validity),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true,
	}
	authorityPEM, err := sign(authority, authority, authorityKey.Public(), authorityKey)
	if err != nil {
		return nil, err
	}
	serverPEM, err := sign(server, authority, key.Public(), authorityKey)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		authorityFile:    authorityPEM,
		authorityKeyFile: pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(authorityKey)}),
		certificateFile:  serverPEM,
		keyFile:          pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: keyDER}),
	}, nil
}

func sign(template, parent *x509.Certificate, public crypto.PublicKey, by *rsa.PrivateKey) ([]byte, error) {
	der, err := x509.CreateCertificate(rand.Reader, template, parent, public, by)
	if err != nil {
		return nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}
