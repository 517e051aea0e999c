package machineconfig

import (
	stdx509 "crypto/x509"
	"fmt"
	"time"

	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/constants"

	"tazlab.net/castle/ci/cluster/config"
)

// Kube is what a client of the Kubernetes API needs. All but Host is PEM; Key is secret.
type Kube struct {
	Host string // "https://192.168.1.210:6443"
	CA   []byte
	Cert []byte
	Key  []byte
}

// AdminKube signs an administrator's client certificate with the bundle's certificate authority, without asking the
// cluster, which need not exist yet. Nothing is written to a disk.
func AdminKube(c *config.Cluster, bundle *Bundle, ttl time.Duration) (Kube, error) {
	authority, err := x509.NewCertificateAuthorityFromCertificateAndKey(bundle.Certs.K8s)
	if err != nil {
		return Kube{}, fmt.Errorf("certificate authority of kubernetes in the machine secrets: %w", err)
	}
	now := time.Now()
	pair, err := x509.NewKeyPair(authority,
		x509.CommonName(constants.KubernetesAdminCertCommonName),
		x509.Organization(constants.KubernetesAdminCertOrganization),
		x509.NotBefore(now.Add(-ClockSkew)),
		x509.NotAfter(now.Add(ttl)),
		x509.KeyUsage(stdx509.KeyUsageDigitalSignature|stdx509.KeyUsageKeyEncipherment),
		x509.ExtKeyUsage([]stdx509.ExtKeyUsage{stdx509.ExtKeyUsageClientAuth}),
	)
	if err != nil {
		return Kube{}, fmt.Errorf("sign an administrator's certificate for %s: %w", c.Name, err)
	}
	signed := x509.NewCertificateAndKeyFromKeyPair(pair)
	return Kube{Host: endpoint(c), CA: bundle.Certs.K8s.Crt, Cert: signed.Crt, Key: signed.Key}, nil
}
