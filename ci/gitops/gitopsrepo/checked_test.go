package gitopsrepo

import (
	"path/filepath"
	"testing"

	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/gitops/gitopscheck"
)

func TestCheckGitopsFindsNothing(t *testing.T) {
	everyPair(t, func(t *testing.T, request Request) {
		folder := filepath.Join(t.TempDir(), "repository")
		if err := rendered(t, request).Write(folder, false); err != nil {
			t.Fatal(err)
		}
		report, err := gitopscheck.Check(t.Context(), gitopscheck.Options{Dir: folder})
		if err != nil {
			t.Fatal(err)
		}
		if report.Errors > 0 || report.Warnings > 0 {
			text, err := rendering.As("text", report)
			t.Errorf("%s%v", text, err)
		}
	})
}
