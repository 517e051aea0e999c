package run

import (
	"fmt"
	"strings"

	"tazlab.net/castle/ci/cluster/hypervisor"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/secrets"
)

// Alone are the cluster's Proxmox, to be closed when done, and the layers' states as files, which cannot be decrypted, by what the SOPS
// files hold: for what has to work where Infisical does not.
func (c *Cluster) Alone() (*hypervisor.Hypervisor, state.Store, error) {
	values, err := secrets.FromFiles(c.Description, secrets.Inputs{Folder: c.Folder, AgeKey: c.AgeKey})
	if err != nil {
		return nil, state.Store{}, err
	}
	token, has := values.Get(secrets.ProxmoxAPIToken)
	if !has {
		return nil, state.Store{}, fmt.Errorf("%s is missing in %s", secrets.ProxmoxAPIToken, strings.Join(c.Description.Secrets.SOPS, ", "))
	}
	key, _ := values.Get(secrets.AWSAccessKeyID)
	secret, _ := values.Get(secrets.AWSSecretAccessKey)
	states := state.Store{Cluster: c.Description, Folder: c.State, Bucket: state.Bucket(c.Description, key, secret)}
	return hypervisor.Open(c.Description, c.roots, token), states, nil
}
