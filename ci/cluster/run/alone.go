package run

import (
	"fmt"
	"strings"

	"tazlab.net/castle/ci/cluster/hypervisor"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/secrets"
)

// HypervisorAlone is the cluster's Proxmox, to be closed when done, by what the SOPS files hold: for what has to work where Infisical does not.
func (c *Cluster) HypervisorAlone() (*hypervisor.Hypervisor, error) {
	values, err := c.fromFiles()
	if err != nil {
		return nil, err
	}
	token, has := values.Get(secrets.ProxmoxAPIToken)
	if !has {
		return nil, fmt.Errorf("%s is missing in %s", secrets.ProxmoxAPIToken, strings.Join(c.Description.Secrets.SOPS, ", "))
	}
	return hypervisor.Open(c.Description, c.roots, token), nil
}

// StatesAlone are the layers' states as files, which cannot be decrypted, by what the SOPS files hold.
func (c *Cluster) StatesAlone() (state.Store, error) {
	values, err := c.fromFiles()
	if err != nil {
		return state.Store{}, err
	}
	key, _ := values.Get(secrets.AWSAccessKeyID)
	secret, _ := values.Get(secrets.AWSSecretAccessKey)
	return state.Store{Cluster: c.Description, Folder: c.State, Bucket: state.Bucket(c.Description, key, secret)}, nil
}

func (c *Cluster) fromFiles() (*secrets.Values, error) {
	return secrets.FromFiles(c.Description, secrets.Inputs{Folder: c.Folder, AgeKey: c.AgeKey})
}
