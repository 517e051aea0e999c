package run

import (
	"context"
	"fmt"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/secrets"
)

// neverCreated is the error about a cluster whose PKI nobody has.
func neverCreated(described *config.Cluster) error {
	return fmt.Errorf("cluster %s was never created, or its PKI is not where the description says: there is no %s for it; dagger call create --cluster %s makes it",
		described.Name, secrets.TalosSecrets, described.Name)
}

// KubeAccess is what it takes to look into a cluster.
type KubeAccess struct {
	Cluster string // its name
	Client  *kube.Client
}

// KubeAccess gets access to the cluster's API as create does: with an administrator's certificate made in memory. Of c it
// needs Folder and AgeKey.
func (c *Cluster) KubeAccess(ctx context.Context) (*KubeAccess, error) {
	description, err := config.Load(c.Folder)
	if err != nil {
		return nil, err
	}
	if err := description.Unready(); err != nil {
		return nil, err
	}
	values, err := secrets.Resolve(ctx, description, secrets.Inputs{Folder: c.Folder, AgeKey: c.AgeKey})
	if err != nil {
		return nil, err
	}
	text, has := values.Get(secrets.TalosSecrets)
	if !has {
		return nil, neverCreated(description)
	}
	known, err := newAccess(description, values, text)
	if err != nil {
		return nil, err
	}
	client, err := known.API()
	if err != nil {
		return nil, err
	}
	return &KubeAccess{Cluster: description.Name, Client: client}, nil
}
