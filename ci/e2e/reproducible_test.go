package e2e

import (
	"path/filepath"
	"testing"

	"tazlab.net/castle/ci/testworld"
)

// TestTheSameCommitGivesTheSameDigestWithAColdCache builds, removes all that
// the engine cached, and builds again from another clone.
func TestTheSameCommitGivesTheSameDigestWithAColdCache(t *testing.T) {
	if !ownEngine() {
		t.Skip("NOT RUN: the cache of an engine that is not castle's own would be emptied")
	}
	w, source := testworld.New(t), newBlog(t)
	first := publishJSON(t, w, source)

	pruned := dagger(t, nil, "core", "--progress=plain", "engine", "local-cache", "prune")
	if pruned.err != nil {
		t.Fatalf("%v\n%s", pruned.err, pruned.stderr)
	}
	clone := t.TempDir()
	testworld.Git(t, clone, "clone", "--quiet", source, ".")
	second := publishJSON(t, w, clone)
	if second.Image.Digest != first.Image.Digest || !second.Image.AlreadyThere {
		t.Errorf("got %s at first and %s with a cold cache", first.Image.Digest, second.Image.Digest)
	}
}

// TestACommitWhoseBuildsDifferIsPublishedOnce builds a site that shows the time.
// Reading the status rewrites the index, so that the second call builds anew.
func TestACommitWhoseBuildsDifferIsPublishedOnce(t *testing.T) {
	w, source := testworld.New(t), newSite(t, map[string]string{
		"hugo.toml":          "baseURL = 'https://example.org/'\ntitle = 'Clock'\n",
		"layouts/index.html": "<!doctype html><title>{{ site.Title }}</title><p>{{ now.UnixNano }}</p>",
		"content/_index.md":  "---\ntitle: Clock\n---\n",
	})
	first := publishJSON(t, w, source, "--path=.")
	write(t, filepath.Join(source, "hugo.toml"), "title = 'changed'\n")
	testworld.Git(t, source, "checkout", "--quiet", "hugo.toml")

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
