//go:build linux

package kube

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/keyutil"
)

// certificateLife is one power-on's; the world is not kept up for a year.
const certificateLife = 365 * 24 * time.Hour

// PKI is what a Talos cluster's secrets bundle holds for Kubernetes.
type PKI struct {
	ClusterCA, AggregatorCA, EtcdCA KeyPair
	ServiceAccountKey               []byte // PEM
}

// KeyPair is a certificate and its key, PEM.
type KeyPair struct{ Certificate, Key []byte }

func (p PKI) equal(other PKI) bool {
	return p.ClusterCA.equal(other.ClusterCA) && p.AggregatorCA.equal(other.AggregatorCA) && p.EtcdCA.equal(other.EtcdCA) &&
		bytes.Equal(p.ServiceAccountKey, other.ServiceAccountKey)
}

func (k KeyPair) equal(other KeyPair) bool {
	return bytes.Equal(k.Certificate, other.Certificate) && bytes.Equal(k.Key, other.Key)
}

// kubeletClient is whom a kubelet answers.
const kubeletClient = "kube-apiserver-kubelet-client"

// apiServerFile is the name of the API server's certificate and key.
const apiServerFile = "apiserver"

// authority signs certificates.
type authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
}

func (k KeyPair) authority(name string) (*authority, error) {
	block, _ := pem.Decode(k.Certificate)
	if block == nil {
		return nil, fmt.Errorf("%s CA: the certificate is not PEM", name)
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s CA: %w", name, err)
	}
	parsed, err := keyutil.ParsePrivateKeyPEM(k.Key)
	if err != nil {
		return nil, fmt.Errorf("%s CA: the key cannot be read", name) // the cause might quote it
	}
	key, ok := parsed.(crypto.Signer)
	if !ok {
		return nil, fmt.Errorf("%s CA: the key cannot sign", name)
	}
	return &authority{certificate, key}, nil
}

// issue makes a key and a certificate for it. Names that are addresses become address SANs.
func (a *authority) issue(commonName string, organization []string, usages []x509.ExtKeyUsage, names ...string) (KeyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return KeyPair{}, err
	}
	keyPEM, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return KeyPair{}, err
	}
	certificate, err := a.certify(key.Public(), commonName, organization, usages, names...)
	return KeyPair{certificate, keyPEM}, err
}

// certify makes a certificate for a key that exists.
func (a *authority) certify(key crypto.PublicKey, commonName string, organization []string, usages []x509.ExtKeyUsage, names ...string) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: commonName, Organization: organization},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateLife),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment, ExtKeyUsage: usages,
	}
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, key, a.key)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate of %s: %w", commonName, err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), nil
}

var (
	serverUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	clientUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	bothUsages  = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
)

// identities are the clients of the API server that the plane itself starts or is, by file name.
var identities = map[string][]string{ // common name, organization
	"admin":              {"admin", "system:masters"},
	"controller-manager": {"system:kube-controller-manager"},
	"scheduler":          {"system:kube-scheduler"},
}

// pkiFiles writes what the control plane reads into a folder that only its owner can enter, and returns the clients' pairs.
func (c Config) pkiFiles(folder string, names []string) (map[string]KeyPair, error) {
	cluster, err1 := c.PKI.ClusterCA.authority("cluster")
	aggregator, err2 := c.PKI.AggregatorCA.authority("aggregator")
	etcd, err3 := c.PKI.EtcdCA.authority("etcd")
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	pairs := map[string]KeyPair{"ca": c.PKI.ClusterCA, "aggregator-ca": {Certificate: c.PKI.AggregatorCA.Certificate}, "etcd-ca": {Certificate: c.PKI.EtcdCA.Certificate}}
	clients := map[string]KeyPair{}
	for _, wanted := range []struct {
		name, commonName string
		by               *authority
		usages           []x509.ExtKeyUsage
		names            []string
	}{
		{apiServerFile, "kube-apiserver", cluster, serverUsage, names},
		{"kubelet-client", kubeletClient, cluster, clientUsage, nil},
		{"aggregator", "front-proxy-client", aggregator, clientUsage, nil},
		{"etcd", "etcd", etcd, bothUsages, []string{"localhost", "127.0.0.1"}},
		{"etcd-client", "kube-apiserver", etcd, clientUsage, nil},
	} {
		if pairs[wanted.name], err1 = wanted.by.issue(wanted.commonName, nil, wanted.usages, wanted.names...); err1 != nil {
			return nil, err1
		}
	}
	for name, identity := range identities {
		pair, err := cluster.issue(identity[0], identity[1:], clientUsage)
		if err != nil {
			return nil, err
		}
		clients[name] = pair
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, err
	}
	files := map[string][]byte{"service-account.key": c.PKI.ServiceAccountKey}
	for name, pair := range pairs {
		files[name+".crt"] = pair.Certificate
		if len(pair.Key) > 0 {
			files[name+".key"] = pair.Key
		}
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(folder, name), data, 0o600); err != nil {
			return nil, err
		}
	}
	return clients, nil
}

// recertify gives the API server, which watches its certificate's file, one that is valid for more names.
func (c Config) recertify(folder string, names []string) error {
	cluster, err := c.PKI.ClusterCA.authority("cluster")
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(folder, apiServerFile+".crt"), filepath.Join(folder, apiServerFile+".key"))
	if err != nil {
		return err
	}
	certificate, err := cluster.certify(pair.PrivateKey.(crypto.Signer).Public(), "kube-apiserver", nil, serverUsage, names...)
	if err != nil {
		return err
	}
	next := filepath.Join(folder, apiServerFile+".new")
	if err := os.WriteFile(next, certificate, 0o600); err != nil {
		return err
	}
	return os.Rename(next, filepath.Join(folder, apiServerFile+".crt"))
}

// kubeletTLS is what the nodes' kubelets serve with: to the API server, and to nobody else.
func (c Config) kubeletTLS() (*tls.Config, error) {
	cluster, err := c.PKI.ClusterCA.authority("cluster")
	if err != nil {
		return nil, err
	}
	pair, err := cluster.issue("kubelet", nil, serverUsage, "kubelet")
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		return nil, err
	}
	clients := x509.NewCertPool()
	clients.AddCert(cluster.certificate)
	return &tls.Config{
		Certificates: []tls.Certificate{certificate}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients,
		VerifyConnection: func(state tls.ConnectionState) error {
			if name := state.PeerCertificates[0].Subject.CommonName; name != kubeletClient {
				return fmt.Errorf("%s may not ask a kubelet", name)
			}
			return nil
		},
	}, nil
}
