package gitopscheck

import (
	"context"

	"tazlab.net/castle/ci/gitops/gitopscheck/manifests"
)

// Cluster says what a cluster would do with objects.
type Cluster interface {
	// DryRun is what the API server says against an object if it were applied now: nothing, or why it refuses it. later is why
	// that cannot be told yet, as with a kind or a namespace that the cluster does not have.
	DryRun(ctx context.Context, object *manifests.Object) (refused, later string, err error)
}

func (c *check) dryRun() {
	if c.cluster == nil {
		return
	}
	for _, part := range c.parts() {
		if part.by == nil || part.by.Suspended() {
			continue
		}
		for _, object := range part.objects {
			if manifests.IsEncrypted(object.Object) || hasUnknown(object.Object) {
				c.note("%s is encrypted, or has values that are not in the repository: the cluster was not asked", object.ID())
				continue
			}
			refused, later, err := c.cluster.DryRun(c.ctx, object)
			switch {
			case err != nil:
				c.note("%s: the cluster gave no answer: %v", object.ID(), err)
			case later != "":
				c.note("%s: %s", object.ID(), later)
			case refused != "":
				c.on(object, nil, ruleDryRun, object.GetKind(), "%s: the cluster refuses it: %s", object.ID(), refused)
			}
		}
	}
}
