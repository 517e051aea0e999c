package e2e

import (
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
