package publish_test

import (
	"errors"
	"strings"
	"testing"

	"tazlab.net/castle/ci/publish"
	"tazlab.net/castle/ci/publish/publishtest"
	"tazlab.net/castle/ci/publish/report"
)

func TestTheRolloutIsWaitedForWhenTheManifestIsPushed(t *testing.T) {
	t.Parallel()
	w := publishtest.New(t)
	follower := &publishtest.Cluster{T: t, World: w}
	options := w.Options(t, "1a2b3c4", publishtest.NewImage(t))
	options.Waiter = follower
	for _, changed := range []bool{true, false} { // a second publish has nothing to push, but may wait
		result := publishtest.MustRun(t, options)
		if follower.Commit == "" || follower.Commit != follower.Tip || follower.Commit != result.GitOps.Commit || result.Changed != changed {
			t.Errorf("asked for commit %q when the tip was %q; the result names %q", follower.Commit, follower.Tip, result.GitOps.Commit)
		}
		if want := w.Image() + ":blog-1a2b3c4"; follower.Image != want || !strings.Contains(follower.Manifest, `"`+want+`"`) {
			t.Errorf("asked for image %q where the manifest is\n%s", follower.Image, follower.Manifest)
		}
		rollout := result.Rollout
		if rollout == nil || !rollout.Available || rollout.Seconds <= 0 || rollout.Again != "" || rollout.Revision != "main@sha1:"+follower.Commit {
			t.Errorf("%+v", rollout)
		}
		if last := result.Steps[len(result.Steps)-1]; last.Name != "wait for the rollout" {
			t.Errorf("the last step is %q", last.Name)
		}
	}
}

func TestAPinnedDigestIsPartOfTheImageThatIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := publishtest.New(t)
	follower := &publishtest.Cluster{T: t, World: w}
	options := w.Options(t, "1a2b3c4", publishtest.NewImage(t))
	options.Waiter, options.Update.PinDigest = follower, true
	if result := publishtest.MustRun(t, options); follower.Image != result.Image.Reference() {
		t.Errorf("asked for %s, want %s", follower.Image, result.Image.Reference())
	}
}

func TestWhatIsPublishedStaysSoWhenTheRolloutIsNotSeen(t *testing.T) {
	t.Parallel()
	w := publishtest.New(t)
	options := w.Options(t, "1a2b3c4", publishtest.NewImage(t))
	cause := errors.New("waiting for Deployment hugo-blog: 0 of 2 available, 10m0s")
	options.Waiter = &publishtest.Cluster{T: t, World: w, Fails: cause}
	result, err := publish.Run(t.Context(), options)
	if _, ok := errors.AsType[*report.UnseenError](err); !ok || !errors.Is(err, cause) {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{
		"the image " + w.Image() + ":blog-1a2b3c4@" + result.Image.Digest + " is in the registry",
		"the manifest on branch main names it (GitOps commit " + w.Tip(t)[:12] + ")",
		"only the rollout of blog/hugo-blog on cluster blue was not seen: " + cause.Error(),
		"\nto wait again: dagger call wait-blog --cluster blue",
	} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("no %q in\n%v", part, err)
		}
	}
	if !result.Changed || !result.GitOps.Changed || result.Rollout == nil || result.Rollout.Available || result.Rollout.Problem != cause.Error() {
		t.Errorf("%+v %+v", result, result.Rollout)
	}
}

func TestNothingIsWaitedForThatWasNotPublished(t *testing.T) {
	t.Parallel()
	w := publishtest.New(t)
	follower := &publishtest.Cluster{T: t, World: w}
	dry := w.Options(t, "1a2b3c4", publishtest.NewImage(t))
	dry.Waiter, dry.DryRun = follower, true
	if result := publishtest.MustRun(t, dry); result.Rollout != nil {
		t.Errorf("%+v", result.Rollout)
	}
	lost := w.Options(t, "1a2b3c4", publishtest.NewImage(t))
	lost.Waiter, lost.Update.Path = follower, "no/such.yaml"
	if _, err := publish.Run(t.Context(), lost); err == nil {
		t.Error("the manifest that is not there was changed")
	}
	if follower.Asked != 0 {
		t.Errorf("the cluster was asked %d times", follower.Asked)
	}
}
