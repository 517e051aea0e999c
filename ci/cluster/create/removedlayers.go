package create

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/run"
	"tazlab.net/castle/ci/cluster/teardown"
)

// checkUnwanted finds the layers that are there and that cluster.yaml has no more. It fails where one of them was not typed by name, where
// another one was, and where something would be lost that nobody has named.
func (c *creation) checkUnwanted(ctx context.Context) error {
	var against []error
	for _, name := range c.RemoveLayers {
		if !slices.ContainsFunc(layers.Without(c.cluster.Description), func(layer layers.Layer) bool { return layer.Name == name }) {
			against = append(against, fmt.Errorf("--remove-layer %s: only a layer is removed that cluster.yaml does without (storage: none, loadBalancer: none)", name))
		}
	}
	unwanted, err := c.cluster.Unwanted(ctx, c.access)
	if err != nil {
		return err
	}
	for _, one := range unwanted {
		if !slices.Contains(c.RemoveLayers, one.Layer.Name) {
			against = append(against, one.Refused(c.cluster.Description.Name))
			continue
		}
		c.unwanted = append(c.unwanted, one.Layer)
		if one.Layer.Name == layers.Storage {
			against = append(against, noVolumes(ctx, c.access))
		}
	}
	if err := errors.Join(against...); err != nil {
		return &run.Failure{Cause: err.Error(), Resume: "nothing was changed"}
	}
	return nil
}

// noVolumes fails where Longhorn has volumes: what is on them would be lost.
func noVolumes(ctx context.Context, access *run.Access) error {
	connection, err := teardownOf(access)
	if err != nil {
		return err
	}
	volumes, err := connection.LonghornVolumes(ctx)
	if err == nil && len(volumes) > 0 {
		err = fmt.Errorf("the volumes %s are Longhorn's: move what is on them, and remove their claims", strings.Join(volumes, ", "))
	}
	return err
}

func teardownOf(access *run.Access) (*teardown.Cluster, error) {
	client, err := access.API()
	if err != nil {
		return nil, err
	}
	return teardown.Of(client)
}

// removeUnwanted removes layers that the cluster goes on without.
func (c *creation) removeUnwanted(ctx context.Context) error {
	if len(c.unwanted) == 0 {
		return nil
	}
	connection, err := teardownOf(c.access)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(c.unwanted, func(layer layers.Layer) bool { return layer.Name == layers.Storage }) {
		err := c.record.LayerStep(c.cluster.Description.Name, layers.Storage, "Longhorn's deletion flag", func(tell func(string)) (bool, error) {
			return connection.LetLonghornGo(ctx, tell)
		})
		if err != nil {
			return err
		}
	}
	return c.cluster.DestroyLayers(ctx, c.record, c.access, c.unwanted, 0)
}
