package publish

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"tazlab.net/castle/ci/publish/gitops"
	"tazlab.net/castle/ci/publish/imagepush"
)

// published is a world in which two commits were published, the older first.
func published(t *testing.T) (w *world, older, newer Result) {
	t.Helper()
	w = newWorld(t)
	older = mustRun(t, w.options(t, "1a2b3c4", newImage(t)))
	newer = mustRun(t, w.options(t, "5d6e7f8", newImage(t)))
	return w, older, newer
}

func TestARollbackPointsTheManifestAtTheEarlierImage(t *testing.T) {
	t.Parallel()
	w, older, _ := published(t)
	after := w.git(t, "show", older.GitOps.Commit+":"+manifestPath)
	w.takeEvents()
	result, err := Rollback(t.Context(), w.rollbackTo("1a2b"))
	if err != nil {
		t.Fatal(err)
	}
	mustHaveNone(t, w.takeEvents(), isRegistryWrite)
	if w.manifest(t) != after {
		t.Errorf("the manifest is\n%s\nwant\n%s", w.manifest(t), after)
	}
	if !result.Rollback || !result.Changed || result.GitOps.Commit != w.tip(t) ||
		result.Image.Reference() != older.Image.Reference() || result.Source.Commit != older.Source.Commit {
		t.Errorf("%+v", result)
	}
	if entry := w.history(t)[0]; entry.Action != gitops.Rollback || entry.SourceCommit != older.Source.Commit || entry.Digest != older.Image.Digest {
		t.Errorf("%+v", entry)
	}
}

func TestARollbackToWhatRunsChangesNothing(t *testing.T) {
	t.Parallel()
	w, _, newer := published(t)
	w.mustStay(t, func() {
		result, err := Rollback(t.Context(), w.rollbackTo(newer.Source.Commit))
		if err != nil || result.Changed || result.GitOps.Commit != w.tip(t) {
			t.Errorf("%+v, %v", result, err)
		}
		if !strings.HasPrefix(result.Text(), "Nothing to do: the manifest names this image already\n") {
			t.Errorf("got\n%s", result.Text())
		}
	})
}

func TestADryRunOfARollbackTellsTheChangeAndMakesNone(t *testing.T) {
	t.Parallel()
	w, _, _ := published(t)
	o := w.rollbackTo("1a2b3c4")
	o.Update.DryRun = true
	w.mustStay(t, func() {
		result, err := Rollback(t.Context(), o)
		if err != nil || !result.DryRun || !result.GitOps.Changed || result.GitOps.Commit != "" {
			t.Errorf("%+v, %v", result, err)
		}
	})
}

func TestARollbackToACommitThatWasNeverPublishedNamesThoseThatWere(t *testing.T) {
	t.Parallel()
	w, _, _ := published(t)
	w.mustStay(t, func() {
		_, err := Rollback(t.Context(), w.rollbackTo("badc0de"))
		mustSay(t, err, "badc0de", "1a2b3c4", "5d6e7f8")
		if !errors.Is(err, gitops.ErrNotPublished) {
			t.Errorf("got %v", err)
		}
	})
}

func TestARollbackToAnImageThatWasDeletedIsRefused(t *testing.T) {
	t.Parallel()
	w, older, _ := published(t)
	if err := remote.Delete(w.remoteName(t, "@"+older.Image.Digest), w.remoteAuth()); err != nil {
		t.Fatal(err)
	}
	w.mustStay(t, func() {
		_, err := Rollback(t.Context(), w.rollbackTo("1a2b3c4"))
		mustSay(t, err, "the image to roll back to", w.image()+":blog-1a2b3c4", "does not exist in the registry")
		var missing *imagepush.NotFoundError
		if !errors.As(err, &missing) {
			t.Errorf("%T", err)
		}
	})
}

func TestARollbackToAnImageThatWasReplacedIsRefusedAndBothDigestsAreNamed(t *testing.T) {
	t.Parallel()
	w, older, _ := published(t)
	other := newImage(t)
	w.overwrite(t, "blog-1a2b3c4", other)
	w.mustStay(t, func() {
		_, err := Rollback(t.Context(), w.rollbackTo("1a2b3c4"))
		mustSay(t, err, "no longer what was published", older.Image.Digest, digestOf(t, other), "publish that commit again")
	})
}

func TestADigestThatWasPinnedByHandCountsInARollback(t *testing.T) {
	t.Parallel()
	w, _, newer := published(t)
	image := newImage(t)
	w.overwrite(t, "blog-9a8b7c6", image)
	current := newer.Image.Repository + ":" + newer.Image.Tag
	w.commitByHand(t, "Pin", strings.ReplaceAll(w.manifest(t), current, w.image()+":blog-9a8b7c6@"+digestOf(t, image)))
	w.commitByHand(t, "Back", strings.ReplaceAll(w.manifest(t), w.image()+":blog-9a8b7c6@"+digestOf(t, image), current))

	other := newImage(t)
	w.overwrite(t, "blog-9a8b7c6", other)
	w.mustStay(t, func() {
		_, err := Rollback(t.Context(), w.rollbackTo("9a8b7c6"))
		mustSay(t, err, digestOf(t, image), digestOf(t, other))
	})
	w.overwrite(t, "blog-9a8b7c6", image)
	if _, err := Rollback(t.Context(), w.rollbackTo("9a8b7c6")); err != nil {
		t.Error(err)
	}
}

func TestARollbackWaitsForNoRegistryThatRefuses(t *testing.T) {
	t.Parallel()
	w, _, _ := published(t)
	w.setAnswer(func(rw http.ResponseWriter, _ *http.Request) bool {
		rw.WriteHeader(http.StatusUnauthorized)
		return true
	})
	w.mustStay(t, func() {
		_, err := Rollback(t.Context(), w.rollbackTo("1a2b3c4"))
		var refused *imagepush.AuthError
		if !errors.As(err, &refused) {
			t.Errorf("got %v", err)
		}
	})
}

// overwrite moves a tag past castle, as another tool would.
func (w *world) overwrite(t *testing.T, tag string, image v1.Image) {
	t.Helper()
	if err := remote.Write(w.remoteName(t, ":"+tag), image, w.remoteAuth()); err != nil {
		t.Fatal(err)
	}
}

func (w *world) remoteName(t *testing.T, suffix string) name.Reference {
	t.Helper()
	reference, err := name.ParseReference(w.image() + suffix)
	if err != nil {
		t.Fatal(err)
	}
	return reference
}

func (w *world) remoteAuth() remote.Option {
	return remote.WithAuth(&authn.Basic{Username: "robot", Password: registryPassword})
}
