package run

import (
	"context"
	"fmt"

	"tazlab.net/castle/ci/cluster/description"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/secrets"
)

// KubeAccess is what it takes to look into a cluster.
type KubeAccess struct {
	Cluster string // its name
	Client  *kube.Client
}

// KubeAccess gets access to the cluster's API as create does: with an administrator's certificate made in memory. Of c it
// needs Folder and AgeKey.
func (c *Cluster) KubeAccess(ctx context.Context) (*KubeAccess, error) {
	description, err := description.Load(c.Folder)
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
		return nil, fmt.Errorf("cluster %s was never created: Infisical holds no %s for it; dagger call create --cluster %s makes it",
			description.Name, secrets.TalosSecrets, description.Name)
	}
	known, err := newAccess(description, values, text)
	if err != nil {
		return nil, err
	}
	client, err := kube.Connect(known.Kube.Host, known.Kube.CA, known.Kube.Cert, known.Kube.Key)
	if err != nil {
		return nil, err
	}
	return &KubeAccess{Cluster: description.Name, Client: client}, nil
}
