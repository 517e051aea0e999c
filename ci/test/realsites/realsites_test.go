package realsites

import (
	"path/filepath"
	"testing"

	"tazlab.net/castle/ci/base/git"
	"tazlab.net/castle/ci/test/needs"
)

// A site's image can be looked for in a registry only when its commit is the same each time.
func TestASiteIsWrittenAsTheSameCleanCommit(t *testing.T) {
	needs.UnlessShort(t, "the themes' Go modules")
	for _, site := range []Site{tailwind, lfs, blowfish, learn} {
		t.Run(site.Name, func(t *testing.T) {
			var commits [2]string
			for i := range commits {
				dir := filepath.Join(t.TempDir(), "site")
				if err := site.Write(t.Context(), dir); err != nil {
					t.Fatal(err)
				}
				runner := git.Runner{Dir: dir}
				status, err := runner.Run(t.Context(), "status", "--porcelain")
				if err != nil || status != "" {
					t.Errorf("the tree is not clean: %v\n%s", err, status)
				}
				if commits[i], err = runner.Run(t.Context(), "rev-parse", "HEAD"); err != nil {
					t.Fatal(err)
				}
				if err := site.Write(t.Context(), dir); err == nil {
					t.Error("a folder that is not empty was written to")
				}
			}
			if commits[0] != commits[1] {
				t.Errorf("got the commits %q", commits)
			}
		})
	}
}

func TestSamplesAreSites(t *testing.T) {
	if samples := Samples(); len(samples) == 0 || len(samples) == len(All()) {
		t.Errorf("%d of %d sites are samples", len(samples), len(All()))
	}
}
