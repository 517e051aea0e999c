package publishtest

import (
	"testing"
	"time"

	"tazlab.net/castle/ci/publish"
	"tazlab.net/castle/ci/publish/gitops"
	"tazlab.net/castle/ci/publish/history"
	"tazlab.net/castle/ci/publish/imagepush"
	"tazlab.net/castle/ci/publish/manifest"
	"tazlab.net/castle/ci/publish/report"
	"tazlab.net/castle/ci/publish/rollback"
	"tazlab.net/castle/ci/publish/siteimage/ocilayout"
)

// Access has short pauses and few attempts, so that a registry that stays broken is given up soon.
func (w *World) Access() imagepush.Access {
	return imagepush.Access{Username: "robot", Password: RegistryPassword, Pause: time.Millisecond, Tries: 3, Timeout: 20 * time.Second}
}

// Options publish an image as that of the commit that begins with the digits.
func (w *World) Options(t *testing.T, digits string, image ocilayout.Artifact) publish.Options {
	t.Helper()
	return publish.Options{
		Commit:     CommitOf(digits),
		Layout:     newLayout(t, image),
		Image:      w.Image(),
		TagPrefix:  "blog-",
		Registry:   w.Access(),
		Repository: w.Repository(),
		Update:     gitops.UpdateRequest{Path: ManifestPath},
	}
}

// RollbackTo goes back to the image of a commit.
func (w *World) RollbackTo(commit string) rollback.Options {
	return rollback.Options{
		To: commit, Image: w.Image(), Registry: w.Access(),
		Repository: w.Repository(), Update: gitops.UpdateRequest{Path: ManifestPath},
	}
}

// History is all that was published.
func (w *World) History(t *testing.T) history.List {
	t.Helper()
	entries, err := gitops.History(t.Context(), w.Repository(), ManifestPath, manifest.Selector{Image: w.Image()}, 0)
	if err != nil {
		t.Fatal(err)
	}
	return history.List(entries)
}

// MustRun publishes.
func MustRun(t *testing.T, o publish.Options) report.Result {
	t.Helper()
	result, err := publish.Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	return result
}

// Published is a world in which two commits were published, the older first.
func Published(t *testing.T) (w *World, older, newer report.Result) {
	t.Helper()
	w = New(t)
	older = MustRun(t, w.Options(t, "1a2b3c4", NewImage(t)))
	newer = MustRun(t, w.Options(t, "5d6e7f8", NewImage(t)))
	return w, older, newer
}
