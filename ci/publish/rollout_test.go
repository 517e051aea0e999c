package publish_test

import (
	"errors"
	"strings"
	"testing"

	"tazlab.net/castle/ci/publish/publishtest"
	"tazlab.net/castle/ci/publish/report"
)

func TestTheRolloutIsWaitedForWhenTheManifestIsPushed(t *testing.T) {
	t.Parallel()
	w := publishtest.New(t)
	follower := &publishtest.Cluster{T: t, World: w}
	options := w.Options(t, "1a2b3c4", publishtest.NewImage(t))
	for _, changed := range []bool{true, false} { // a second publish has nothing to push, but may wait
		result := publishtest.MustRun(t, options)
		if err := result.WaitRollout(t.Context(), follower); err != nil {
			t.Fatal(err)
		}
		if want := (report.Resource{Kind: "Deployment", Name: "hugo-blog"}); follower.Resource != want || follower.Repository != w.Image() {
			t.Errorf("asked for %+v of %q, want %+v", follower.Resource, follower.Repository, want)
		}
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
	options.Update.PinDigest = true
	result := publishtest.MustRun(t, options)
	if err := result.WaitRollout(t.Context(), follower); err != nil || follower.Image != result.Image.Reference() {
		t.Errorf("asked for %s, want %s", follower.Image, result.Image.Reference())
	}
}

func TestWhatIsPublishedStaysSoWhenTheRolloutIsNotSeen(t *testing.T) {
	t.Parallel()
	w := publishtest.New(t)
	options := w.Options(t, "1a2b3c4", publishtest.NewImage(t))
	cause := errors.New("waiting for Deployment hugo-blog: 0 of 2 available, 10m0s")
	result := publishtest.MustRun(t, options)
	err := result.WaitRollout(t.Context(), &publishtest.Cluster{T: t, World: w, Fails: cause})
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

func TestNothingIsWaitedForAfterADryRun(t *testing.T) {
	t.Parallel()
	w := publishtest.New(t)
	follower := &publishtest.Cluster{T: t, World: w}
	dry := w.Options(t, "1a2b3c4", publishtest.NewImage(t))
	dry.DryRun = true
	result := publishtest.MustRun(t, dry)
	if err := result.WaitRollout(t.Context(), follower); err != nil || result.Rollout != nil || follower.Asked != 0 {
		t.Errorf("%v %+v; the cluster was asked %d times", err, result.Rollout, follower.Asked)
	}
}
