package history_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/base/rendering/renderingtest"
	"tazlab.net/castle/ci/publish/gitops"
	"tazlab.net/castle/ci/publish/history"
	"tazlab.net/castle/ci/publish/manifest"
	"tazlab.net/castle/ci/publish/publishtest"
	"tazlab.net/castle/ci/publish/rollback"
)

const (
	oldDigest = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	newDigest = "sha256:2222222222222222222222222222222222222222222222222222222222222222"
	oldSHA    = "1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d"
	newSHA    = "5d6e7f8091a2b3c4d5e6f708192a3b4c5d6e7f80"
	commitSHA = "c0ffee00112233445566778899aabbccddeeff00"
)

func TestAHistoryReadsAsItsGoldenFile(t *testing.T) {
	reference := func(tag, digest string) manifest.Reference {
		return manifest.Reference{Repository: "tazzo/tazlab.net", Tag: tag, Digest: digest}
	}
	at := func(hour int) time.Time { return time.Date(2026, 1, 2, hour, 0, 0, 0, time.UTC) }
	renderingtest.MustRead(t, "history", history.List{
		{
			Commit: commitSHA, Time: at(13), Author: "castle", Action: gitops.Publish, SourceCommit: oldSHA, Digest: newDigest,
			SourceRepository: "https://example.org/blog.git", Old: reference("blog-1a2b3c4", ""), New: reference("blog-1a2b3c4-r2", ""),
		},
		{
			Commit: commitSHA, Time: at(12), Author: "castle", Action: gitops.Rollback, SourceCommit: oldSHA, Digest: oldDigest,
			SourceRepository: "https://example.org/blog.git", Old: reference("blog-5d6e7f8", ""), New: reference("blog-1a2b3c4", ""),
		},
		{
			Commit: newSHA, Time: at(11), Author: "castle", Action: gitops.Publish, SourceCommit: newSHA, Digest: newDigest,
			SourceRepository: "https://example.org/blog.git", Old: reference("", newDigest), New: reference("blog-5d6e7f8", ""),
		},
		{Commit: oldSHA, Time: at(10), Author: "A | B `c`", Old: reference("blog-by-hand", ""), New: reference("", newDigest)},
		{Commit: commitSHA, Time: at(9), Author: "Some Person", Old: manifest.Reference{}, New: reference("blog-by-hand", "")},
		{Commit: newSHA, Time: at(8), Author: "Some Person", Old: reference("blog-older", ""), New: manifest.Reference{}},
	})
	renderingtest.MustRead(t, "history-empty", history.List(nil))
}

func TestTheHistoryOfARealRepositoryNamesWhatWasDoneByHand(t *testing.T) {
	t.Parallel()
	w, older, _ := publishtest.Published(t)
	w.CommitByHand(t, "Hurry", strings.ReplaceAll(w.Manifest(t), ":blog-5d6e7f8", ":blog-by-hand"))
	if _, err := rollback.Run(t.Context(), w.RollbackTo("1a2b3c4")); err != nil {
		t.Fatal(err)
	}
	text, err := rendering.As("json", w.History(t))
	if err != nil {
		t.Fatal(err)
	}
	var records []struct{ Action, New, Digest, Author string }
	if err := json.Unmarshal([]byte(text), &records); err != nil {
		t.Fatal(err)
	}
	var actions []string
	for _, r := range records {
		actions = append(actions, r.Action)
	}
	if got := strings.Join(actions, ", "); got != "rollback, by hand, publish, publish, by hand" {
		t.Errorf("actions %s", got)
	}
	if records[0].New != w.Image()+":blog-1a2b3c4" || records[0].Digest != older.Image.Digest || records[1].Author != "Some Person" {
		t.Errorf("%+v", records[:2])
	}
}
