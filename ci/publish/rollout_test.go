package publish

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// cluster is one that follows a world's GitOps repository: it takes down what it was asked for, and what the repository
// said at that moment.
type cluster struct {
	t     *testing.T
	world *world
	fails error

	commit, image string
	tip, manifest string
	asked         int
}

func (c *cluster) Wait(_ context.Context, commit, image string) (RolloutReport, error) {
	c.asked++
	c.commit, c.image, c.tip, c.manifest = commit, image, c.world.tip(c.t), c.world.manifest(c.t)
	rollout := RolloutReport{Cluster: "blue", Deployment: "blog/hugo-blog", Again: "dagger call wait-blog --cluster blue"}
	if c.fails == nil {
		rollout.Revision, rollout.Image = "main@sha1:"+commit, image
	}
	return rollout, c.fails
}

func TestTheRolloutIsWaitedForWhenTheManifestIsPushed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	follower := &cluster{t: t, world: w}
	options := w.options(t, "1a2b3c4", newImage(t))
	options.Waiter = follower
	for _, changed := range []bool{true, false} { // a second publish has nothing to push, but may wait
		result := mustRun(t, options)
		if follower.commit == "" || follower.commit != follower.tip || follower.commit != result.GitOps.Commit || result.Changed != changed {
			t.Errorf("asked for commit %q when the tip was %q; the result names %q", follower.commit, follower.tip, result.GitOps.Commit)
		}
		if want := w.image() + ":blog-1a2b3c4"; follower.image != want || !strings.Contains(follower.manifest, `"`+want+`"`) {
			t.Errorf("asked for image %q where the manifest is\n%s", follower.image, follower.manifest)
		}
		rollout := result.Rollout
		if rollout == nil || !rollout.Available || rollout.Seconds <= 0 || rollout.Again != "" || rollout.Revision != "main@sha1:"+follower.commit {
			t.Errorf("%+v", rollout)
		}
		if last := result.Steps[len(result.Steps)-1]; last.Name != "wait for the rollout" {
			t.Errorf("the last step is %q", last.Name)
		}
	}
}

func TestAPinnedDigestIsPartOfTheImageThatIsWaitedFor(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	follower := &cluster{t: t, world: w}
	options := w.options(t, "1a2b3c4", newImage(t))
	options.Waiter, options.Update.PinDigest = follower, true
	if result := mustRun(t, options); follower.image != result.Image.Reference() {
		t.Errorf("asked for %s, want %s", follower.image, result.Image.Reference())
	}
}

func TestWhatIsPublishedStaysSoWhenTheRolloutIsNotSeen(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	options := w.options(t, "1a2b3c4", newImage(t))
	cause := errors.New("waiting for Deployment hugo-blog: 0 of 2 available, 10m0s")
	options.Waiter = &cluster{t: t, world: w, fails: cause}
	result, err := Run(t.Context(), options)
	if _, ok := errors.AsType[*UnseenError](err); !ok || !errors.Is(err, cause) {
		t.Fatalf("got %v", err)
	}
	for _, part := range []string{
		"the image " + w.image() + ":blog-1a2b3c4@" + result.Image.Digest + " is in the registry",
		"the manifest on branch main names it (GitOps commit " + w.tip(t)[:12] + ")",
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
	w := newWorld(t)
	follower := &cluster{t: t, world: w}
	dry := w.options(t, "1a2b3c4", newImage(t))
	dry.Waiter, dry.DryRun = follower, true
	if result := mustRun(t, dry); result.Rollout != nil {
		t.Errorf("%+v", result.Rollout)
	}
	lost := w.options(t, "1a2b3c4", newImage(t))
	lost.Waiter, lost.Update.Path = follower, "no/such.yaml"
	if _, err := Run(t.Context(), lost); err == nil {
		t.Error("the manifest that is not there was changed")
	}
	if follower.asked != 0 {
		t.Errorf("the cluster was asked %d times", follower.asked)
	}
}

func TestTheRolloutOfARollbackIsWaitedForWhenTheManifestIsPushed(t *testing.T) {
	t.Parallel()
	w, older, _ := published(t)
	follower := &cluster{t: t, world: w}
	options := w.rollbackTo("1a2b3c4")
	options.Waiter = follower
	for _, changed := range []bool{true, false} { // a second rollback has nothing to push, but may wait
		result, err := Rollback(t.Context(), options)
		if err != nil {
			t.Fatal(err)
		}
		if follower.commit == "" || follower.commit != follower.tip || follower.commit != result.GitOps.Commit || result.Changed != changed {
			t.Errorf("asked for commit %q when the tip was %q; the result names %q", follower.commit, follower.tip, result.GitOps.Commit)
		}
		if want := older.Image.Repository + ":" + older.Image.Tag; follower.image != want || !strings.Contains(follower.manifest, `"`+want+`"`) {
			t.Errorf("asked for image %q where the manifest is\n%s", follower.image, follower.manifest)
		}
		if result.Rollout == nil || !result.Rollout.Available || result.Rollout.Seconds <= 0 || result.Seconds < result.Rollout.Seconds {
			t.Errorf("%+v in %g s", result.Rollout, result.Seconds)
		}
		if last := result.Steps[len(result.Steps)-1]; last.Name != "wait for the rollout" {
			t.Errorf("the last step is %q", last.Name)
		}
	}
}

func TestTheManifestStaysRolledBackWhenTheRolloutIsNotSeen(t *testing.T) {
	t.Parallel()
	w, older, _ := published(t)
	options := w.rollbackTo("1a2b3c4")
	cause := errors.New("waiting for Deployment hugo-blog: 0 of 2 available, 10m0s")
	options.Waiter = &cluster{t: t, world: w, fails: cause}
	result, err := Rollback(t.Context(), options)
	if _, ok := errors.AsType[*UnseenError](err); !ok || !errors.Is(err, cause) {
		t.Fatalf("got %v", err)
	}
	mustSay(t, err,
		"the image "+older.Image.Reference()+" is in the registry",
		"the manifest on branch main names it (GitOps commit "+w.tip(t)[:12]+")",
		"only the rollout of blog/hugo-blog on cluster blue was not seen: "+cause.Error(),
		"\nto wait again: dagger call wait-blog --cluster blue")
	if !result.Changed || result.Rollout == nil || result.Rollout.Available || !strings.HasPrefix(result.Text(), "Rolled back, but its rollout was not seen\n") {
		t.Errorf("%+v in\n%s", result.Rollout, result.Text())
	}
}

func TestNothingIsWaitedForThatWasNotRolledBack(t *testing.T) {
	t.Parallel()
	w, _, _ := published(t)
	follower := &cluster{t: t, world: w}
	dry := w.rollbackTo("1a2b3c4")
	dry.Waiter, dry.Update.DryRun = follower, true
	if result, err := Rollback(t.Context(), dry); err != nil || result.Rollout != nil {
		t.Errorf("%+v, %v", result.Rollout, err)
	}
	lost := w.rollbackTo("badc0de")
	lost.Waiter = follower
	if _, err := Rollback(t.Context(), lost); err == nil {
		t.Error("the manifest went back to what was never published")
	}
	if follower.asked != 0 {
		t.Errorf("the cluster was asked %d times", follower.asked)
	}
}

func TestARolloutReadsAsItsGoldenFile(t *testing.T) {
	available := RolloutReport{
		Available: true, Cluster: "blue", Deployment: "blog/hugo-blog", Revision: "main@sha1:" + commitSHA,
		Image: "tazzo/tazlab.net:blog-5d6e7f8", Seconds: 2.345,
	}
	unseen := RolloutReport{
		Cluster: "blue", Deployment: "blog/hugo-blog", Seconds: 600.01,
		Problem: "waiting for Flux to fetch c0ffee: Ready is False: GitOperationFailed, 10m0s\nwaiting for Deployment hugo-blog in blog: Flux has not fetched the commit yet, 10m0s",
		Again:   "dagger call wait-blog --cluster blue --revision " + commitSHA + " --image tazzo/tazlab.net:blog-5d6e7f8",
	}
	mustRead(t, "rollout-available", available)
	mustRead(t, "rollout-unseen", unseen)
	unseen.Cluster, unseen.Revision = "", "main@sha1:"+commitSHA
	mustRead(t, "rollout-unseen-by-kubeconfig", unseen)

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
		mustRead(t, name, result)
	}
}

func TestTheTimeOfARolloutCountsFromThePush(t *testing.T) {
	rollout, err := Wait(t.Context(), instant{}, "", "", time.Now().Add(-time.Minute))
	if err != nil || rollout.Seconds < 60 || rollout.Seconds > 120 {
		t.Errorf("%v %v", rollout, err)
	}
}

type instant struct{}

func (instant) Wait(context.Context, string, string) (RolloutReport, error) {
	return RolloutReport{}, nil
}
