// Package adminconfig gets an administrator's kubeconfig and talosconfig, and judges those that were kept: each is signed anew whenever
// it is asked for, so that only what it opens can be compared.
package adminconfig

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"slices"
	"time"

	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"k8s.io/client-go/tools/clientcmd"

	clusterconfig "tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/talos/machineconfig"
)

// RenewBefore is how long before its end a certificate is taken for too old. Talos signs them for a year.
const RenewBefore = 30 * 24 * time.Hour

// Kubeconfig is an administrator's kubeconfig, made by a control plane.
func Kubeconfig(ctx context.Context, cluster *run.Cluster, access *run.Access) ([]byte, error) {
	machines, err := cluster.Machines(access)
	if err != nil {
		return nil, err
	}
	defer machines.Close()
	return machines.Kubeconfig(ctx)
}

// Talosconfig is an administrator's configuration for talosctl, with all control planes as endpoints. No machine is asked.
func Talosconfig(cluster *run.Cluster, access *run.Access) ([]byte, error) {
	_, config, err := machineconfig.Configs(cluster.Description, access.Bundle)
	if err != nil {
		return nil, err
	}
	return config.Bytes()
}

// JudgeKubeconfig says why a kubeconfig that was kept must be replaced, nil where it opens the cluster for some time to come. No value
// is in the error.
func JudgeKubeconfig(text string, described *clusterconfig.Cluster, bundle *machineconfig.Bundle, now time.Time) error {
	config, err := clientcmd.Load([]byte(text))
	if err != nil {
		return errors.New("it is no kubeconfig") // a parser's error would quote it
	}
	context := config.Contexts[config.CurrentContext]
	if context == nil {
		return errors.New("it has no current context")
	}
	cluster, user := config.Clusters[context.Cluster], config.AuthInfos[context.AuthInfo]
	switch {
	case cluster == nil || user == nil:
		return errors.New("its context lacks its cluster or its user")
	case cluster.Server != described.Server():
		return fmt.Errorf("it names %s, and the API is at %s", cluster.Server, described.Server())
	}
	return judgeCertificates(cluster.CertificateAuthorityData, user.ClientCertificateData, user.ClientKeyData, bundle.Certs.K8s.Crt, now)
}

// JudgeTalosconfig is JudgeKubeconfig for a talosconfig.
func JudgeTalosconfig(text string, described *clusterconfig.Cluster, bundle *machineconfig.Bundle, now time.Time) error {
	config, err := clientconfig.FromString(text)
	if err != nil {
		return errors.New("it is no talosconfig")
	}
	context := config.Contexts[config.Context]
	if context == nil {
		return errors.New("it has no current context")
	}
	var endpoints []string
	for _, node := range described.ControlPlanes() {
		endpoints = append(endpoints, node.Address.String())
	}
	if !slices.Equal(context.Endpoints, endpoints) {
		return errors.New("its endpoints are not the control planes")
	}
	var parts [3][]byte
	for i, part := range []string{context.CA, context.Crt, context.Key} {
		if parts[i], err = base64.StdEncoding.DecodeString(part); err != nil {
			return errors.New("its certificates cannot be read")
		}
	}
	return judgeCertificates(parts[0], parts[1], parts[2], bundle.Certs.OS.Crt, now)
}

// judgeCertificates: all are PEM, and authority is the cluster's own.
func judgeCertificates(trusted, client, key, authority []byte, now time.Time) error {
	own, err := parse(authority)
	if err != nil {
		return err
	}
	pair, err := tls.X509KeyPair(client, key)
	if err != nil {
		return errors.New("its certificate and its key cannot be read, or do not belong together")
	}
	leaf, err := x509.ParseCertificate(pair.Certificate[0])
	if err != nil {
		return errors.New("its certificate cannot be read")
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(trusted)
	if _, err := own.Verify(x509.VerifyOptions{Roots: roots, CurrentTime: own.NotBefore, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageAny}}); err != nil {
		return errors.New("it trusts another cluster's authority")
	}
	if err := leaf.CheckSignatureFrom(own); err != nil {
		return errors.New("its certificate is of another cluster's authority")
	}
	if leaf.NotAfter.Before(now.Add(RenewBefore)) {
		return fmt.Errorf("its certificate ends on %s", leaf.NotAfter.UTC().Format(time.DateOnly))
	}
	return nil
}

func parse(text []byte) (*x509.Certificate, error) {
	block, _ := pem.Decode(text)
	if block == nil {
		return nil, errors.New("the machine secrets hold an authority that is not PEM")
	}
	return x509.ParseCertificate(block.Bytes)
}
