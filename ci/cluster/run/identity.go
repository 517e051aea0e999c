package run

import (
	"context"

	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/cluster/secrets"
	"tazlab.net/castle/ci/cluster/talos/machineconfig"
)

// Identity tells the cluster from another one of its name. values are its secrets, or those of its SOPS files
// alone: then the PKI is not known where Infisical has it.
func (c *Cluster) Identity(values *secrets.Values) (state.Identity, error) {
	key, pki := "", ""
	if passphrase, has := values.Get(secrets.StatePassphrase); has {
		var err error
		if key, err = secrets.StateKey(c.Description.Name, passphrase); err != nil {
			return state.Identity{}, err
		}
	}
	if text, has := values.Get(secrets.TalosSecrets); has {
		bundle, err := machineconfig.ParseSecrets([]byte(text))
		if err != nil {
			return state.Identity{}, err
		}
		pki = bundle.Cluster.ID
	}
	return state.IdentityOf(c.Description, c.Folder, key, pki), nil
}

// FolderIsOurs fails where the folder of states, notes and records holds another cluster's, before anything is
// written into it. typed is as state.Store's Belongs has it.
func (c *Cluster) FolderIsOurs(ctx context.Context, typed string) error {
	folder := state.Store{Cluster: c.Description, Folder: c.State}
	if vacant, err := folder.Vacant(ctx); err != nil || vacant {
		return err
	}
	values, err := secrets.FromFiles(c.Description, c.inputs())
	var me state.Identity
	if err == nil {
		me, err = c.Identity(values)
	}
	if err != nil {
		return err
	}
	return folder.Belongs(ctx, me, typed)
}
