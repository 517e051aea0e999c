package talos

import (
	"context"
	stdx509 "crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/constants"
	"go.yaml.in/yaml/v3"

	"tazlab.net/castle/ci/cluster/description"
)

// Kube is what a client of the Kubernetes API needs. All but Host is PEM; Key is secret.
type Kube struct {
	Host string // "https://192.168.1.210:6443"
	CA   []byte
	Cert []byte
	Key  []byte
}

// AdminKube signs an administrator's client certificate with the bundle's certificate authority, without asking the
// cluster, which need not exist yet. The second result is the same as a kubeconfig. Nothing is written to a disk.
func AdminKube(c *description.Cluster, bundle *Bundle, ttl time.Duration) (Kube, []byte, error) {
	authority, err := x509.NewCertificateAuthorityFromCertificateAndKey(bundle.Certs.K8s)
	if err != nil {
		return Kube{}, nil, fmt.Errorf("certificate authority of kubernetes in the machine secrets: %w", err)
	}
	now := time.Now()
	pair, err := x509.NewKeyPair(authority,
		x509.CommonName(constants.KubernetesAdminCertCommonName),
		x509.Organization(constants.KubernetesAdminCertOrganization),
		x509.NotBefore(now.Add(-clockSkew)),
		x509.NotAfter(now.Add(ttl)),
		x509.KeyUsage(stdx509.KeyUsageDigitalSignature|stdx509.KeyUsageKeyEncipherment),
		x509.ExtKeyUsage([]stdx509.ExtKeyUsage{stdx509.ExtKeyUsageClientAuth}),
	)
	if err != nil {
		return Kube{}, nil, fmt.Errorf("sign an administrator's certificate for %s: %w", c.Name, err)
	}
	signed := x509.NewCertificateAndKeyFromKeyPair(pair)
	kube := Kube{Host: endpoint(c), CA: bundle.Certs.K8s.Crt, Cert: signed.Crt, Key: signed.Key}
	kubeconfig, err := kube.config(c.Name)
	return kube, kubeconfig, err
}

func (k Kube) config(name string) ([]byte, error) {
	type named map[string]any
	user := "admin@" + name
	data, err := yaml.Marshal(named{
		"apiVersion": "v1",
		"kind":       "Config",
		"clusters": []named{{"name": name, "cluster": named{
			"server": k.Host, "certificate-authority-data": encode(k.CA),
		}}},
		"users": []named{{"name": user, "user": named{
			"client-certificate-data": encode(k.Cert), "client-key-data": encode(k.Key),
		}}},
		"contexts": []named{{"name": user, "context": named{
			"cluster": name, "user": user, "namespace": "default",
		}}},
		"current-context": user,
	})
	if err != nil {
		return nil, fmt.Errorf("write the kubeconfig of %s: %w", name, err)
	}
	return data, nil
}

// Kubeconfig is an administrator's kubeconfig made by the first control plane that answers, valid for a year.
func (a *Access) Kubeconfig(ctx context.Context) ([]byte, error) {
	var failures []error
	for _, node := range a.controlPlanes() {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		data, err := node.client.Kubeconfig(ctx)
		cancel()
		if err == nil {
			return data, nil
		}
		failures = append(failures, fmt.Errorf("%s: %w", node.Name, err))
	}
	return nil, fmt.Errorf("no control plane of %s gave a kubeconfig: %w", a.cluster.Name, errors.Join(failures...))
}
