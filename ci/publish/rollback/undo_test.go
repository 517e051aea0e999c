package rollback_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"tazlab.net/castle/ci/publish/gitops"
	"tazlab.net/castle/ci/publish/publishtest"
	"tazlab.net/castle/ci/publish/report"
	"tazlab.net/castle/ci/publish/rollback"
)

var errCrashes = errors.New("waiting for Deployment hugo-blog: 0 of 2 available, 10m0s")

// failed is a world in which the rollout of the second publish failed, as the outcome tells the next step.
func failed(t *testing.T) (w *publishtest.World, older, newer report.Result) {
	t.Helper()
	w, older, newer = publishtest.Published(t)
	if err := newer.WaitRollout(t.Context(), &publishtest.Cluster{T: t, World: w, Fails: errCrashes, Failed: true}); err == nil || !newer.Rollout.Failed {
		t.Fatalf("%+v %v", newer.Rollout, err)
	}
	data, err := json.Marshal(newer)
	if err != nil {
		t.Fatal(err)
	}
	newer = report.Result{}
	if err := json.Unmarshal(data, &newer); err != nil {
		t.Fatal(err)
	}
	return w, older, newer
}

func TestAFailedRolloutPutsTheImageBeforeItBackAndTheCallFailsWithBoth(t *testing.T) {
	t.Parallel()
	for name, second := range map[string]error{"which comes up": nil, "which does not come up either": errors.New("no node is ready")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, older, newer := failed(t)
			result, err := rollback.Undo(t.Context(), w.RollbackTo(""), newer)
			if err != nil {
				t.Fatal(err)
			}
			if !strings.Contains(w.Manifest(t), `"`+w.Image()+":"+older.Image.Tag+`"`) || result.GitOps.Commit != w.Tip(t) {
				t.Errorf("%+v; the manifest is\n%s", result.GitOps, w.Manifest(t))
			}
			if entry := w.History(t)[0]; entry.Action != gitops.Rollback || entry.Digest != older.Image.Digest {
				t.Errorf("%+v", entry)
			}
			if message := w.Git(t, "log", "-1", "--format=%B", "main"); !strings.Contains(message, "The rollout of "+w.Image()+":"+newer.Image.Tag+" failed.") {
				t.Errorf("the commit says\n%s", message)
			}
			follower := &publishtest.Cluster{T: t, World: w, Fails: second}
			err = result.WaitUndone(t.Context(), follower)
			publishtest.MustSay(t, err, errCrashes.Error(), "blog/hugo-blog", "was put back")
			if follower.Image != w.Image()+":"+older.Image.Tag || follower.Commit != w.Tip(t) {
				t.Errorf("waited for %+v", follower.Delivered)
			}
			if second == nil {
				publishtest.MustSay(t, err, "and is available")
			} else {
				publishtest.MustSay(t, err, second.Error())
			}
			for _, part := range []string{"went back from", w.Image() + ":" + newer.Image.Tag, errCrashes.Error()} {
				if !strings.Contains(result.Text(), part) {
					t.Errorf("no %q in\n%s", part, result.Text())
				}
			}
		})
	}
}

func TestNothingIsPutBackWhereSomebodyHasDecidedMeanwhile(t *testing.T) {
	t.Parallel()
	w, _, newer := failed(t)
	w.CommitByHand(t, "Try another", strings.Replace(w.Manifest(t), newer.Image.Tag+`"`, `by-hand"`, 1))
	w.MustStay(t, func() {
		_, err := rollback.Undo(t.Context(), w.RollbackTo(""), newer)
		if !errors.Is(err, gitops.ErrConflict) {
			t.Errorf("got %v", err)
		}
		publishtest.MustSay(t, err, errCrashes.Error(), "by-hand", "was not put back")
	})
}

func TestNothingIsPutBackThatIsNotKnownToHaveFailed(t *testing.T) {
	t.Parallel()
	w, _, newer := failed(t)
	unseen, unchanged := newer, newer
	unseen.Rollout = &report.Rollout{Problem: "no route to the cluster"}
	unchanged.GitOps.Changed = false
	for _, outcome := range []report.Result{unseen, unchanged, {}} {
		w.MustStay(t, func() {
			if _, err := rollback.Undo(t.Context(), w.RollbackTo(""), outcome); err == nil {
				t.Errorf("%+v: no error", outcome.Rollout)
			}
		})
	}
}

func TestWithPullRequestsTheWayBackIsProposedAndNotWaitedFor(t *testing.T) {
	t.Parallel()
	w, older, newer := failed(t)
	hub := w.GitHub(t)
	o := w.RollbackTo("")
	o.PullRequest = publishtest.ByPullRequest(hub, 0)
	o.Update.PushBranch = "blog"
	before := w.Tip(t)
	result, err := rollback.Undo(t.Context(), o, newer)
	if err != nil || w.Tip(t) != before {
		t.Fatalf("%v, main at %s", err, w.Tip(t))
	}
	if pulls := hub.Pulls(); len(pulls) != 1 || !strings.HasPrefix(pulls[0].Head, "castle/rollback/") || !strings.Contains(pulls[0].Title, older.Image.Tag) {
		t.Errorf("%+v", pulls)
	}
	follower := &publishtest.Cluster{T: t, World: w}
	publishtest.MustSay(t, result.WaitUndone(t.Context(), follower), errCrashes.Error(), "/pull/1", "is proposed")
	if follower.Asked != 0 {
		t.Error("it was waited for what nobody had merged")
	}
}

// What ran before the publish was written by hand: it is put back as it was, also where new images are pinned.
func TestATagWithoutADigestIsPutBackWithoutOne(t *testing.T) {
	t.Parallel()
	w := publishtest.New(t)
	w.Overwrite(t, "blog-0000000", publishtest.NewImage(t))
	o := w.Options(t, "1a2b3c4", publishtest.NewImage(t))
	o.Update.PinDigest = true
	published := publishtest.MustRun(t, o)
	cluster := &publishtest.Cluster{T: t, World: w, Fails: errCrashes, Failed: true}
	if err := published.WaitRollout(t.Context(), cluster); err == nil {
		t.Fatal("the rollout did not fail")
	}
	back := w.RollbackTo("")
	back.Update.PinDigest = true
	if _, err := rollback.Undo(t.Context(), back, published); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(w.Manifest(t), `"`+w.Image()+`:blog-0000000"`) || w.History(t)[0].Digest != "" {
		t.Errorf("%+v; the manifest is\n%s", w.History(t)[0], w.Manifest(t))
	}
}
