package teardown

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"tazlab.net/castle/ci/cluster/flux"
)

var helmReleases = schema.GroupVersionResource{Group: "helm.toolkit.fluxcd.io", Version: "v2", Resource: "helmreleases"}

// RemoveFlux removes what Flux has applied, by Flux itself, while its controllers run: its Kustomizations with what they made, and the releases
// of Helm that none of these had made. What it left would be made again while the layers below it go.
func (c *Cluster) RemoveFlux(ctx context.Context, tell func(string)) (did bool, err error) {
	for _, kind := range []schema.GroupVersionResource{flux.Kustomizations, helmReleases} {
		objects, err := c.list(ctx, kind)
		if err != nil {
			return did, err
		}
		did = did || len(objects) > 0
		if err := c.remove(ctx, objects, tell); err != nil {
			return did, err
		}
	}
	return did, nil
}
