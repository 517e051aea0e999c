package run

import (
	"fmt"
	"strings"

	"tazlab.net/castle/ci/cluster/hypervisor"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/secrets"
)

// Alone are the cluster's Proxmox, to be closed when done, the layers' states as files, and whose they have to be,
// by what the SOPS files hold: for what has to work where Infisical does not.
func (c *Cluster) Alone() (*hypervisor.Hypervisor, state.Store, state.Identity, error) {
	values, err := secrets.FromFiles(c.Description, secrets.Inputs{Folder: c.Folder, AgeKey: c.AgeKey})
	if err != nil {
		return nil, state.Store{}, state.Identity{}, err
	}
	if _, has := values.Get(secrets.ProxmoxAPIToken); !has {
		return nil, state.Store{}, state.Identity{}, fmt.Errorf("%s is missing in %s", secrets.ProxmoxAPIToken, strings.Join(c.Description.Secrets.SOPS, ", "))
	}
	me, err := c.Identity(values)
	if err != nil {
		return nil, state.Store{}, state.Identity{}, err
	}
	return c.Proxmox(values), c.StateFiles(values), me, nil
}

// Proxmox is the cluster's, to be closed when done, by the token that is among these secrets.
func (c *Cluster) Proxmox(values *secrets.Values) *hypervisor.Hypervisor {
	token, _ := values.Get(secrets.ProxmoxAPIToken)
	return hypervisor.Open(c.Description, c.roots, token)
}

// StateFiles are the layers' states as files, which cannot be decrypted, by the keys of a store that are among these secrets.
func (c *Cluster) StateFiles(values *secrets.Values) state.Store {
	key, _ := values.Get(secrets.AWSAccessKeyID)
	secret, _ := values.Get(secrets.AWSSecretAccessKey)
	return state.Store{Cluster: c.Description, Folder: c.State, Bucket: state.Bucket(c.Description, key, secret)}
}
