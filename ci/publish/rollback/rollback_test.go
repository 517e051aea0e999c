package rollback_test

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/remote"

	"tazlab.net/castle/ci/publish/gitops"
	"tazlab.net/castle/ci/publish/imagepush"
	"tazlab.net/castle/ci/publish/publishtest"
	"tazlab.net/castle/ci/publish/report"
	"tazlab.net/castle/ci/publish/rollback"
)

func TestARollbackPointsTheManifestAtTheEarlierImage(t *testing.T) {
	t.Parallel()
	w, older, _ := publishtest.Published(t)
	after := w.Git(t, "show", older.GitOps.Commit+":"+publishtest.ManifestPath)
	w.TakeEvents()
	result, err := rollback.Run(t.Context(), w.RollbackTo("1a2b"))
	if err != nil {
		t.Fatal(err)
	}
	publishtest.MustHaveNone(t, w.TakeEvents(), publishtest.IsRegistryWrite)
	if w.Manifest(t) != after {
		t.Errorf("the manifest is\n%s\nwant\n%s", w.Manifest(t), after)
	}
	if !result.Rollback || !result.Changed || result.GitOps.Commit != w.Tip(t) ||
		result.Image.Reference() != older.Image.Reference() || result.Source.Commit != older.Source.Commit {
		t.Errorf("%+v", result)
	}
	if entry := w.History(t)[0]; entry.Action != gitops.Rollback || entry.SourceCommit != older.Source.Commit || entry.Digest != older.Image.Digest {
		t.Errorf("%+v", entry)
	}
}

func TestARollbackFindsARebuildAndWhatWasBeforeIt(t *testing.T) {
	t.Parallel()
	w, _, newer := publishtest.Published(t)
	o := w.Options(t, "5d6e7f8", publishtest.NewImage(t))
	o.Rebuild = true
	again := publishtest.MustRun(t, o)
	for _, step := range []struct {
		to   string
		want report.Result
	}{
		{"5d6e7f8-r1", newer}, {"5d6e7f8-r2", again}, {"blog-5d6e7f8", newer}, {"blog-5d6e7f8-r2", again},
	} {
		result, err := rollback.Run(t.Context(), w.RollbackTo(step.to))
		if err != nil || !result.Changed || result.Image.Reference() != step.want.Image.Reference() || result.Source.Commit != newer.Source.Commit {
			t.Errorf("%s: %+v, %v", step.to, result, err)
		}
		if want := `"` + w.Image() + ":" + step.want.Image.Tag + `"`; !strings.Contains(w.Manifest(t), want) {
			t.Errorf("%s: no %s in\n%s", step.to, want, w.Manifest(t))
		}
	}
	follower := &publishtest.Cluster{T: t, World: w}
	result, err := rollback.Run(t.Context(), w.RollbackTo("5d6e"))
	if err := errors.Join(err, result.WaitRollout(t.Context(), follower)); err != nil || follower.Image != w.Image()+":blog-5d6e7f8-r2" {
		t.Errorf("the newest is %q, %v", follower.Image, err)
	}
}

func TestARollbackToWhatRunsChangesNothing(t *testing.T) {
	t.Parallel()
	w, _, newer := publishtest.Published(t)
	w.MustStay(t, func() {
		result, err := rollback.Run(t.Context(), w.RollbackTo(newer.Source.Commit))
		if err != nil || result.Changed || result.GitOps.Commit != w.Tip(t) {
			t.Errorf("%+v, %v", result, err)
		}
		if !strings.HasPrefix(result.Text(), "Nothing to do: the manifest names this image already\n") {
			t.Errorf("got\n%s", result.Text())
		}
	})
}

func TestADryRunOfARollbackTellsTheChangeAndMakesNone(t *testing.T) {
	t.Parallel()
	w, _, _ := publishtest.Published(t)
	o := w.RollbackTo("1a2b3c4")
	o.Update.DryRun = true
	w.MustStay(t, func() {
		result, err := rollback.Run(t.Context(), o)
		if err != nil || !result.DryRun || !result.GitOps.Changed || result.GitOps.Commit != "" {
			t.Errorf("%+v, %v", result, err)
		}
	})
}

func TestARollbackToACommitThatWasNeverPublishedNamesThoseThatWere(t *testing.T) {
	t.Parallel()
	w, _, _ := publishtest.Published(t)
	w.MustStay(t, func() {
		_, err := rollback.Run(t.Context(), w.RollbackTo("badc0de"))
		publishtest.MustSay(t, err, "badc0de", "1a2b3c4", "5d6e7f8")
		if !errors.Is(err, gitops.ErrNotPublished) {
			t.Errorf("got %v", err)
		}
	})
}

func TestARollbackToAnImageThatWasDeletedIsRefused(t *testing.T) {
	t.Parallel()
	w, older, _ := publishtest.Published(t)
	if err := remote.Delete(w.RemoteName(t, "@"+older.Image.Digest), w.RemoteAuth()); err != nil {
		t.Fatal(err)
	}
	w.MustStay(t, func() {
		_, err := rollback.Run(t.Context(), w.RollbackTo("1a2b3c4"))
		publishtest.MustSay(t, err, "the image to roll back to", w.Image()+":blog-1a2b3c4", "does not exist in the registry")
		var missing *imagepush.NotFoundError
		if !errors.As(err, &missing) {
			t.Errorf("%T", err)
		}
	})
}

func TestARollbackToAnImageThatWasReplacedIsRefusedAndBothDigestsAreNamed(t *testing.T) {
	t.Parallel()
	w, older, _ := publishtest.Published(t)
	other := publishtest.NewImage(t)
	w.Overwrite(t, "blog-1a2b3c4", other)
	w.MustStay(t, func() {
		_, err := rollback.Run(t.Context(), w.RollbackTo("1a2b3c4"))
		publishtest.MustSay(t, err, "no longer what was published", older.Image.Digest, publishtest.DigestOf(t, other), "publish that commit again")
	})
}

func TestADigestThatWasPinnedByHandCountsInARollback(t *testing.T) {
	t.Parallel()
	w, _, newer := publishtest.Published(t)
	image := publishtest.NewImage(t)
	w.Overwrite(t, "blog-9a8b7c6", image)
	current := newer.Image.Repository + ":" + newer.Image.Tag
	w.CommitByHand(t, "Pin", strings.ReplaceAll(w.Manifest(t), current, w.Image()+":blog-9a8b7c6@"+publishtest.DigestOf(t, image)))
	w.CommitByHand(t, "Back", strings.ReplaceAll(w.Manifest(t), w.Image()+":blog-9a8b7c6@"+publishtest.DigestOf(t, image), current))

	other := publishtest.NewImage(t)
	w.Overwrite(t, "blog-9a8b7c6", other)
	w.MustStay(t, func() {
		_, err := rollback.Run(t.Context(), w.RollbackTo("9a8b7c6"))
		publishtest.MustSay(t, err, publishtest.DigestOf(t, image), publishtest.DigestOf(t, other))
	})
	w.Overwrite(t, "blog-9a8b7c6", image)
	if _, err := rollback.Run(t.Context(), w.RollbackTo("9a8b7c6")); err != nil {
		t.Error(err)
	}
}

// A tag that was written by hand says nothing of a digest. What the registry has under it today must not count as
// published from then on.
func TestWhatTheRegistryHasOfAnUnrecordedDigestIsNeitherRecordedNorPinned(t *testing.T) {
	t.Parallel()
	w, _, newer := publishtest.Published(t)
	w.Overwrite(t, "blog-9a8b7c6", publishtest.NewImage(t))
	current := newer.Image.Repository + ":" + newer.Image.Tag
	w.CommitByHand(t, "By hand", strings.ReplaceAll(w.Manifest(t), current, w.Image()+":blog-9a8b7c6"))
	w.CommitByHand(t, "Back", strings.ReplaceAll(w.Manifest(t), w.Image()+":blog-9a8b7c6", current))

	o := w.RollbackTo("9a8b7c6")
	o.Update.PinDigest = true
	w.MustStay(t, func() {
		_, err := rollback.Run(t.Context(), o)
		publishtest.MustSay(t, err, "recorded no digest", "blog-9a8b7c6", "--rebuild")
	})
	result, err := rollback.Run(t.Context(), w.RollbackTo("9a8b7c6"))
	if err != nil || len(result.Warnings) != 1 || !strings.Contains(result.Text(), "recorded no digest") {
		t.Errorf("%v in\n%s", err, result.Text())
	}
	if entry := w.History(t)[0]; entry.New.Tag != "blog-9a8b7c6" || entry.Recorded() != "" {
		t.Errorf("%+v", entry)
	}
}

func TestARollbackWaitsForNoRegistryThatRefuses(t *testing.T) {
	t.Parallel()
	w, _, _ := publishtest.Published(t)
	w.SetAnswer(func(rw http.ResponseWriter, _ *http.Request) bool {
		rw.WriteHeader(http.StatusUnauthorized)
		return true
	})
	w.MustStay(t, func() {
		_, err := rollback.Run(t.Context(), w.RollbackTo("1a2b3c4"))
		var refused *imagepush.AuthError
		if !errors.As(err, &refused) {
			t.Errorf("got %v", err)
		}
	})
}

func TestTheRolloutOfARollbackIsWaitedForWhenTheManifestIsPushed(t *testing.T) {
	t.Parallel()
	w, older, _ := publishtest.Published(t)
	follower := &publishtest.Cluster{T: t, World: w}
	options := w.RollbackTo("1a2b3c4")
	for _, changed := range []bool{true, false} { // a second rollback has nothing to push, but may wait
		result, err := rollback.Run(t.Context(), options)
		if err := errors.Join(err, result.WaitRollout(t.Context(), follower)); err != nil {
			t.Fatal(err)
		}
		if follower.Commit == "" || follower.Commit != follower.Tip || follower.Commit != result.GitOps.Commit || result.Changed != changed {
			t.Errorf("asked for commit %q when the tip was %q; the result names %q", follower.Commit, follower.Tip, result.GitOps.Commit)
		}
		if want := older.Image.Repository + ":" + older.Image.Tag; follower.Image != want || !strings.Contains(follower.Manifest, `"`+want+`"`) {
			t.Errorf("asked for image %q where the manifest is\n%s", follower.Image, follower.Manifest)
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
	w, older, _ := publishtest.Published(t)
	options := w.RollbackTo("1a2b3c4")
	cause := errors.New("waiting for Deployment hugo-blog: 0 of 2 available, 10m0s")
	result, err := rollback.Run(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	err = result.WaitRollout(t.Context(), &publishtest.Cluster{T: t, World: w, Fails: cause})
	if _, ok := errors.AsType[*report.UnseenError](err); !ok || !errors.Is(err, cause) {
		t.Fatalf("got %v", err)
	}
	publishtest.MustSay(t, err,
		"the image "+older.Image.Reference()+" is in the registry",
		"the manifest on branch main names it (GitOps commit "+w.Tip(t)[:12]+")",
		"only the rollout of blog/hugo-blog on cluster blue was not seen: "+cause.Error(),
		"\nto wait again: dagger call wait-blog --cluster blue")
	if !result.Changed || result.Rollout == nil || result.Rollout.Available || !strings.HasPrefix(result.Text(), "Rolled back, but its rollout was not seen\n") {
		t.Errorf("%+v in\n%s", result.Rollout, result.Text())
	}
}

func TestNothingIsWaitedForAfterADryRollback(t *testing.T) {
	t.Parallel()
	w, _, _ := publishtest.Published(t)
	follower := &publishtest.Cluster{T: t, World: w}
	dry := w.RollbackTo("1a2b3c4")
	dry.Update.DryRun = true
	result, err := rollback.Run(t.Context(), dry)
	if err := errors.Join(err, result.WaitRollout(t.Context(), follower)); err != nil || result.Rollout != nil || follower.Asked != 0 {
		t.Errorf("%v %+v; the cluster was asked %d times", err, result.Rollout, follower.Asked)
	}
}
