package e2e

import (
	"path/filepath"
	"testing"

	"tazlab.net/castle/ci/base/filetest"
	"tazlab.net/castle/ci/publish/report"
	"tazlab.net/castle/ci/test/needs"
	"tazlab.net/castle/ci/test/tell"
	"tazlab.net/castle/ci/test/world"
)

// TestTheSameCommitGivesTheSameDigestWithAColdCache publishes this blog and the sites of other people, removes all that
// the engine cached, and publishes each again from another clone. All of them stand in one test, since with an empty
// cache castle has to be compiled again.
func TestTheSameCommitGivesTheSameDigestWithAColdCache(t *testing.T) {
	needs.Slow(t)
	if !ownEngine() {
		t.Skip("NOT RUN: the cache of an engine that is not castle's own would be emptied")
	}
	w, source := world.New(t), newBlog(t)
	first := publishJSON(t, w, source)
	var sites []*publishedSite
	for _, site := range chosenSites(t) {
		t.Run(site.Name, func(t *testing.T) {
			sites = append(sites, publishSite(t, w, site))
		})
	}

	pruned := dagger(t, nil, "core", "--progress=plain", "engine", "local-cache", "prune")
	if pruned.err != nil {
		t.Fatalf("%v\n%s", pruned.err, pruned.stderr)
	}
	clone := t.TempDir()
	world.Git(t, clone, "clone", "--quiet", source, ".")
	mustBeTheSame(t, first, publishJSON(t, w, clone), "")
	for _, site := range sites {
		t.Run(site.Name+" again", func(t *testing.T) {
			mustBeTheSame(t, site.first, publishJSON(t, w, writeSite(t, site.Site), pathOf(site.Site)), site.Varies)
		})
	}
}

// mustBeTheSame makes sure that a commit that was built again is the published image, and that the builds are equal
// unless something makes them vary.
func mustBeTheSame(t *testing.T, first, second report.Result, varies string) {
	t.Helper()
	if second.Image.Digest != first.Image.Digest || !second.Image.AlreadyThere || (second.Image.BuildDigest != "") != (varies != "") {
		t.Errorf("got %s at first and, with a cold cache, %+v", first.Image.Digest, second.Image)
	}
}

// TestACommitWhoseBuildsDifferIsPublishedOnce builds a site that shows the time. Reading the status rewrites the index,
// so that the second call builds anew.
func TestACommitWhoseBuildsDifferIsPublishedOnce(t *testing.T) {
	needs.Most(t)
	w, source := world.New(t), newSite(t, map[string]string{
		"hugo.toml":          "baseURL = 'https://example.org/'\ntitle = 'Clock'\n",
		"layouts/index.html": "<!doctype html><title>{{ site.Title }}</title><p>{{ now.UnixNano }}</p>",
		"content/_index.md":  "---\ntitle: Clock\n---\n",
	})
	first := publishJSON(t, w, source, "--path=.")
	filetest.Write(t, filepath.Join(source, "hugo.toml"), "title = 'changed'\n")
	world.Git(t, source, "checkout", "--quiet", "hugo.toml")

	tell.Fault(t, "a commit that Hugo builds to other bytes each time")
	again := publishJSON(t, w, source, "--path=.")
	if again.Changed || !again.Image.AlreadyThere || again.Image.Digest != first.Image.Digest || again.Image.UploadedBytes != 0 {
		t.Errorf("published again: %+v, first %+v", again.Image, first.Image)
	}
	if again.Image.BuildDigest == "" || again.Image.BuildDigest == first.Image.Digest {
		t.Errorf("the report does not say that this build differs: %+v", again.Image)
	}
	if commits := w.Commits(t, "main"); len(commits) != 2 {
		t.Errorf("published twice: %d commits, want the seed and one more: %q", len(commits), commits)
	}
}
