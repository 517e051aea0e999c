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

// mayRemove are the layers that are there and that cluster.yaml has no more. It fails where one of them was not typed by name, where another
// one was, and where something would be lost that nobody has named.
func mayRemove(ctx context.Context, cluster *run.Cluster, access *run.Access, typed []string) ([]layers.Layer, error) {
	var against []error
	for _, name := range typed {
		if !slices.ContainsFunc(layers.Without(cluster.Description), func(layer layers.Layer) bool { return layer.Name == name }) {
			against = append(against, fmt.Errorf("--remove-layer %s: only a layer is removed that cluster.yaml does without (storage: none, loadBalancer: none)", name))
		}
	}
	unwanted, err := cluster.Unwanted(ctx, access)
	if err != nil {
		return nil, err
	}
	var removed []layers.Layer
	for _, one := range unwanted {
		if !slices.Contains(typed, one.Layer.Name) {
			against = append(against, one.Refused(cluster.Description.Name))
			continue
		}
		removed = append(removed, one.Layer)
		if one.Layer.Name == layers.Storage {
			against = append(against, noVolumes(ctx, access))
		}
	}
	if err := errors.Join(against...); err != nil {
		return nil, &run.Failure{Cause: err.Error(), Resume: "nothing was changed"}
	}
	return removed, nil
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

// removeLayers removes layers that the cluster goes on without.
func removeLayers(ctx context.Context, cluster *run.Cluster, record *run.Record, access *run.Access, which []layers.Layer) error {
	if len(which) == 0 {
		return nil
	}
	connection, err := teardownOf(access)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(which, func(layer layers.Layer) bool { return layer.Name == layers.Storage }) {
		err := record.LayerStep(cluster.Description.Name, layers.Storage, "Longhorn's deletion flag", func(tell func(string)) (bool, error) {
			return connection.LetLonghornGo(ctx, tell)
		})
		if err != nil {
			return err
		}
	}
	return cluster.DestroyLayers(ctx, record, access, which, 0)
}
