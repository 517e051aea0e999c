//go:build linux

package kube

import (
	"crypto"
	"crypto/tls"
	stdx509 "crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"time"

	"github.com/siderolabs/crypto/x509"
)

// certificateLife is one power-on's; the world is not kept up for a year.
const certificateLife = 365 * 24 * time.Hour

// PKI is what a Talos cluster's secrets bundle holds for Kubernetes.
type PKI struct {
	ClusterCA, AggregatorCA, EtcdCA *x509.PEMEncodedCertificateAndKey
	ServiceAccountKey               []byte // PEM
}

func (p PKI) equal(other PKI) bool { return reflect.DeepEqual(p, other) }

// kubeletClient is whom a kubelet answers.
const kubeletClient = "kube-apiserver-kubelet-client"

// apiServerFile is the name of the API server's certificate and key.
const apiServerFile = "apiserver"

func authority(pair *x509.PEMEncodedCertificateAndKey, name string) (*x509.CertificateAuthority, error) {
	ca, err := x509.NewCertificateAuthorityFromCertificateAndKey(pair)
	if err != nil {
		return nil, fmt.Errorf("%s CA: %w", name, err)
	}
	return ca, nil
}

// issue makes a key and a certificate for it.
func issue(ca *x509.CertificateAuthority, commonName string, organization []string, usages []stdx509.ExtKeyUsage, names ...string) (*x509.PEMEncodedCertificateAndKey, error) {
	pair, err := x509.NewKeyPair(ca, saying(commonName, organization, usages, names...)...)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate of %s: %w", commonName, err)
	}
	return x509.NewCertificateAndKeyFromKeyPair(pair), nil
}

// certify makes a certificate, PEM, for a key that exists.
func certify(ca *x509.CertificateAuthority, key crypto.PrivateKey, commonName string, usages []stdx509.ExtKeyUsage, names ...string) ([]byte, error) {
	says := saying(commonName, nil, usages, names...)
	request, err := x509.NewCertificateSigningRequest(key, says...)
	if err != nil {
		return nil, err
	}
	certificate, err := x509.NewCertificateFromCSRBytes(ca.CrtPEM, ca.KeyPEM, request.X509CertificateRequestPEM, says...)
	if err != nil {
		return nil, fmt.Errorf("sign the certificate of %s: %w", commonName, err)
	}
	return certificate.X509CertificatePEM, nil
}

// saying is what a certificate says. Names that are addresses become address SANs.
func saying(commonName string, organization []string, usages []stdx509.ExtKeyUsage, names ...string) []x509.Option {
	var addresses []net.IP
	var hosts []string
	for _, name := range names {
		if ip := net.ParseIP(name); ip != nil {
			addresses = append(addresses, ip)
		} else {
			hosts = append(hosts, name)
		}
	}
	now := time.Now()
	return []x509.Option{
		x509.CommonName(commonName), x509.Organization(organization...), x509.IPAddresses(addresses), x509.DNSNames(hosts),
		x509.NotBefore(now.Add(-time.Hour)), x509.NotAfter(now.Add(certificateLife)),
		x509.KeyUsage(stdx509.KeyUsageDigitalSignature | stdx509.KeyUsageKeyEncipherment), x509.ExtKeyUsage(usages),
	}
}

var (
	serverUsage = []stdx509.ExtKeyUsage{stdx509.ExtKeyUsageServerAuth}
	clientUsage = []stdx509.ExtKeyUsage{stdx509.ExtKeyUsageClientAuth}
	bothUsages  = []stdx509.ExtKeyUsage{stdx509.ExtKeyUsageServerAuth, stdx509.ExtKeyUsageClientAuth}
)

// identities are the clients of the API server that the plane itself starts or is, by file name.
var identities = map[string][]string{ // common name, organization
	"admin":              {"admin", "system:masters"},
	"controller-manager": {"system:kube-controller-manager"},
	"scheduler":          {"system:kube-scheduler"},
}

// pkiFiles writes what the control plane reads into a folder that only its owner can enter, and returns the clients' pairs.
func (c Config) pkiFiles(folder string, names []string) (map[string]*x509.PEMEncodedCertificateAndKey, error) {
	cluster, err1 := authority(c.PKI.ClusterCA, "cluster")
	aggregator, err2 := authority(c.PKI.AggregatorCA, "aggregator")
	etcd, err3 := authority(c.PKI.EtcdCA, "etcd")
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	pairs := map[string]*x509.PEMEncodedCertificateAndKey{"ca": c.PKI.ClusterCA, "aggregator-ca": {Crt: c.PKI.AggregatorCA.Crt}, "etcd-ca": {Crt: c.PKI.EtcdCA.Crt}}
	clients := map[string]*x509.PEMEncodedCertificateAndKey{}
	for _, wanted := range []struct {
		name, commonName string
		by               *x509.CertificateAuthority
		usages           []stdx509.ExtKeyUsage
		names            []string
	}{
		{apiServerFile, "kube-apiserver", cluster, serverUsage, names},
		{"kubelet-client", kubeletClient, cluster, clientUsage, nil},
		{"aggregator", "front-proxy-client", aggregator, clientUsage, nil},
		{"etcd", "etcd", etcd, bothUsages, []string{"localhost", "127.0.0.1"}},
		{"etcd-client", "kube-apiserver", etcd, clientUsage, nil},
	} {
		if pairs[wanted.name], err1 = issue(wanted.by, wanted.commonName, nil, wanted.usages, wanted.names...); err1 != nil {
			return nil, err1
		}
	}
	for name, identity := range identities {
		pair, err := issue(cluster, identity[0], identity[1:], clientUsage)
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
		files[name+".crt"] = pair.Crt
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
	cluster, err := authority(c.PKI.ClusterCA, "cluster")
	if err != nil {
		return err
	}
	pair, err := tls.LoadX509KeyPair(filepath.Join(folder, apiServerFile+".crt"), filepath.Join(folder, apiServerFile+".key"))
	if err != nil {
		return err
	}
	certificate, err := certify(cluster, pair.PrivateKey, "kube-apiserver", serverUsage, names...)
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
	cluster, err := authority(c.PKI.ClusterCA, "cluster")
	if err != nil {
		return nil, err
	}
	pair, err := issue(cluster, "kubelet", nil, serverUsage, "kubelet")
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(pair.Crt, pair.Key)
	if err != nil {
		return nil, err
	}
	clients := stdx509.NewCertPool()
	clients.AddCert(cluster.Crt)
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
