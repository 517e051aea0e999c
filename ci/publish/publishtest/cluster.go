package publishtest

import (
	"context"
	"testing"

	"tazlab.net/castle/ci/publish/report"
)

// Cluster is one that follows a world's GitOps repository: it takes down what it was asked for, and what the repository
// said at that moment.
type Cluster struct {
	T     *testing.T
	World *World
	Fails error // nil: the image is rolled out
	// Failed says that it was seen to fail.
	Failed bool

	// Delivered is what was asked for last, Tip and Manifest those of the main branch then.
	report.Delivered
	Tip, Manifest string
	Asked         int // how often
}

// Wait implements report.Waiter.
func (c *Cluster) Wait(_ context.Context, delivered report.Delivered) (report.Rollout, error) {
	c.Asked++
	c.Delivered, c.Tip, c.Manifest = delivered, c.World.Tip(c.T), c.World.Manifest(c.T)
	rollout := report.Rollout{Cluster: "blue", Deployment: "blog/hugo-blog", Again: "dagger call wait-blog --cluster blue", Failed: c.Failed}
	if c.Fails == nil {
		rollout.Revision, rollout.Image = "main@sha1:"+delivered.Commit, delivered.Image
	}
	return rollout, c.Fails
}
