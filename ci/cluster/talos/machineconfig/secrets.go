package machineconfig

import (
	"fmt"
	"time"

	talosconfig "github.com/siderolabs/talos/pkg/machinery/config"
	"github.com/siderolabs/talos/pkg/machinery/config/generate/secrets"
	"go.yaml.in/yaml/v4"

	"tazlab.net/castle/ci/cluster/config"
)

// Bundle is all secrets that machine configurations are made from: the certificate authorities of Talos, Kubernetes and
// etcd, tokens and encryption keys.
type Bundle = secrets.Bundle

// ClockSkew is how far a machine's clock may be behind before it has reached its time server. Certificates begin that
// much earlier.
const ClockSkew = time.Hour

// NewSecrets makes the secrets of a new cluster, as YAML that ParseSecrets reads. Two calls give different secrets: keep
// the first.
func NewSecrets(c *config.Cluster) ([]byte, error) {
	contract, err := contract(c)
	if err != nil {
		return nil, err
	}
	bundle, err := secrets.NewBundle(backdated(), contract)
	if err != nil {
		return nil, fmt.Errorf("make the machine secrets of %s: %w", c.Name, err)
	}
	data, err := yaml.Marshal(bundle)
	if err != nil {
		return nil, fmt.Errorf("write the machine secrets of %s: %w", c.Name, err)
	}
	return data, nil
}

// ParseSecrets reads what NewSecrets made and checks that nothing is missing. The error holds no value.
func ParseSecrets(data []byte) (*Bundle, error) {
	bundle := &Bundle{}
	if err := yaml.Unmarshal(data, bundle); err != nil {
		return nil, fmt.Errorf("the machine secrets are not YAML of the expected shape") // the parser's own text quotes values
	}
	if err := bundle.Validate(); err != nil {
		return nil, fmt.Errorf("the machine secrets are not complete: %w", err)
	}
	bundle.Clock = backdated()
	return bundle, nil
}

func backdated() secrets.Clock { return secrets.NewFixedClock(time.Now().Add(-ClockSkew)) }

// contract is the generation of configuration documents that the cluster's version of Talos reads.
func contract(c *config.Cluster) (*talosconfig.VersionContract, error) {
	contract, err := talosconfig.ParseContractFromVersion(c.Talos.Version)
	if err != nil {
		return nil, fmt.Errorf("talos version %q: write it as v1.13.9", c.Talos.Version)
	}
	if !contract.MultidocNetworkConfigSupported() || contract.Greater(newest) {
		return nil, fmt.Errorf("talos version %s: machine configurations can be written for %s to %s", c.Talos.Version,
			talosconfig.TalosVersion1_12, newest)
	}
	return contract, nil
}

var newest = talosconfig.TalosVersion1_13 // of the machinery library that is built in
