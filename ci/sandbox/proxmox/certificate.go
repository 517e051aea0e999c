package proxmox

import (
	"bytes"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"time"

	"github.com/google/renameio/v2"
)

// Files that hold a host's certificates, as Proxmox calls them.
const (
	AuthorityFile    = "pve-root-ca.pem"
	AuthorityKeyFile = "pve-root-ca.key"
	CertificateFile  = "pve-ssl.pem" // here with its key
)

// How long a certificate is good for, and how long before its end a new one is made (pve-manager, bin/pveupdate).
const (
	certificateLife = 2 * 365 * 24 * time.Hour
	renewedBefore   = 14 * 24 * time.Hour
)

// Certificate is that of a host, kept in a file: it is made where there is none, where another authority has signed it, where it is for
// another address, and where it is about to end. authority is the certificate and the key of the cluster's own authority, in PEM.
//
// Source of its form: pve-cluster, PVE/Cluster/Setup.pm, gen_pve_ssl_cert. pveproxy sends this certificate alone, without the
// authority's.
func Certificate(file string, authority, authorityKey []byte, node Node) (tls.Certificate, error) {
	signer, err := tls.X509KeyPair(authority, authorityKey)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("%s and %s: %w", AuthorityFile, AuthorityKeyFile, err)
	}
	data, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return tls.Certificate{}, err
	}
	if kept, err := tls.X509KeyPair(data, data); err == nil && stillGood(kept.Leaf, signer.Leaf, node) {
		return kept, nil
	}
	if data, err = newCertificate(signer, node); err != nil {
		return tls.Certificate{}, err
	}
	if err := renameio.WriteFile(file, data, 0o600); err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(data, data)
}

func stillGood(kept, authority *x509.Certificate, node Node) bool {
	return kept.CheckSignatureFrom(authority) == nil && kept.VerifyHostname(node.Address.String()) == nil &&
		kept.VerifyHostname(node.Name) == nil && time.Until(kept.NotAfter) > renewedBefore
}

func newCertificate(signer tls.Certificate, node Node) ([]byte, error) {
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	begin := time.Now().Add(-24 * time.Hour)
	leaf, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial,
		Subject:      pkix.Name{OrganizationalUnit: []string{"PVE Cluster Node"}, Organization: []string{"Proxmox Virtual Environment"}, CommonName: node.Name},
		NotBefore:    begin, NotAfter: begin.Add(certificateLife),
		BasicConstraintsValid: true,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback, node.Address.AsSlice()},
		DNSNames:              []string{"localhost", node.Name},
	}, signer.Leaf, &key.PublicKey, signer.PrivateKey)
	if err != nil {
		return nil, err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	var data bytes.Buffer
	for _, block := range []pem.Block{{Type: "CERTIFICATE", Bytes: leaf}, {Type: "PRIVATE KEY", Bytes: encoded}} {
		if err := pem.Encode(&data, &block); err != nil {
			return nil, err
		}
	}
	return data.Bytes(), nil
}
