package teardown

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"tazlab.net/castle/ci/cluster/flux"
)

// RemoveFlux removes what Flux has applied, by Flux itself, while its controllers run: its Kustomizations with what they made, and the releases
// of Helm that none of these had made. What it left would be made again while the layers below it go. None is suspended before: a suspended one
// leaves behind what it made (finalize in internal/controller/kustomization_controller.go of kustomize-controller v1.9.5, and of helm-controller
// internal/controller/helmrelease_controller.go). One that its parent was just applying is there again, under another UID, so that it is looked until
// there is none.
func (c *Cluster) RemoveFlux(ctx context.Context, tell func(string)) (did bool, err error) {
	for _, kind := range []schema.GroupVersionResource{flux.Kustomizations, flux.HelmReleases} {
		for {
			objects, err := c.list(ctx, kind)
			if err != nil {
				return did, err
			}
			if len(objects) == 0 {
				break
			}
			did = true
			if err := c.remove(ctx, objects, tell); err != nil {
				return did, err
			}
		}
	}
	return did, nil
}
