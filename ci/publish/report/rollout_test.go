package report

import (
	"context"
	"testing"
	"time"

	"tazlab.net/castle/ci/base/rendering/renderingtest"
)

func TestARolloutReadsAsItsGoldenFile(t *testing.T) {
	available := Rollout{
		Available: true, Cluster: "blue", Deployment: "blog/hugo-blog", Revision: "main@sha1:" + commitSHA,
		Image: "tazzo/tazlab.net:blog-5d6e7f8", Seconds: 2.345,
	}
	unseen := Rollout{
		Cluster: "blue", Deployment: "blog/hugo-blog", Seconds: 600.01,
		Problem: "waiting for Flux to fetch c0ffee: Ready is False: GitOperationFailed, 10m0s\nwaiting for Deployment hugo-blog in blog: Flux has not fetched the commit yet, 10m0s",
		Again:   "dagger call wait-blog --cluster blue --revision " + commitSHA + " --image tazzo/tazlab.net:blog-5d6e7f8",
	}
	renderingtest.MustRead(t, "rollout-available", available)
	renderingtest.MustReadText(t, "rollout-unseen", unseen)
	unseen.Cluster, unseen.Revision = "", "main@sha1:"+commitSHA
	renderingtest.MustReadText(t, "rollout-unseen-by-kubeconfig", unseen)

	for name, change := range map[string]func(*Result){
		"published-and-available": func(r *Result) { r.Rollout = &available },
		"published-and-unseen":    func(r *Result) { r.Rollout = &unseen },
		"rolled-back-and-unseen": func(r *Result) {
			rolledBack(r)
			r.Rollout = &unseen
		},
		"nothing-to-do-and-available": func(r *Result) {
			r.Changed, r.Image.AlreadyThere, r.Image.UploadedBytes, r.GitOps = false, true, 0, unchanged(r.GitOps)
			r.Rollout = &available
		},
	} {
		result := sample()
		change(&result)
		if inAllFormats[name] {
			renderingtest.MustRead(t, name, result)
		} else {
			renderingtest.MustReadText(t, name, result)
		}
	}
}

func TestTheTimeOfARolloutCountsFromThePush(t *testing.T) {
	rollout, err := Wait(t.Context(), instant{}, Delivered{}, time.Now().Add(-time.Minute))
	if err != nil || rollout.Seconds < 60 || rollout.Seconds > 120 {
		t.Errorf("%v %v", rollout, err)
	}
}

type instant struct{}

func (instant) Wait(context.Context, Delivered) (Rollout, error) { return Rollout{}, nil }
