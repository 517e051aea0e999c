package run

import (
	"context"
	"fmt"

	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/cluster/layers"
)

// Unwanted is a layer that the cluster does without by cluster.yaml, and whose state holds something all the same.
type Unwanted struct {
	Layer     layers.Layer
	Resources []string
}

// Unwanted are those layers.
func (c *Cluster) Unwanted(ctx context.Context, access *Access) (found []Unwanted, err error) {
	without := layers.Without(c.Description)
	if len(without) == 0 {
		return nil, nil
	}
	states, err := c.States(access)
	if err != nil {
		return nil, err
	}
	for _, layer := range without {
		resources, err := states.Resources(ctx, layer.Name)
		if err != nil {
			return nil, err
		}
		if len(resources) > 0 {
			found = append(found, Unwanted{layer, resources})
		}
	}
	return found, nil
}

// Refused says why nothing is done about it unasked.
func (u Unwanted) Refused(cluster string) error {
	return fmt.Errorf("the layer %[1]s is none in cluster.yaml, and its state holds %[2]s: have it removed with dagger call create --cluster %[3]s --remove-layer %[1]s, or take that line of cluster.yaml back",
		u.Layer.Name, rendering.Count(len(u.Resources), "resource"), cluster)
}
