package worktree

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/git"
)

func (r repo) reachable(sha string) (string, error) {
	return Reachable(r.t.Context(), "file://"+r.dir, sha, git.Credentials{})
}

func TestACommitIsReachable(t *testing.T) {
	for _, filters := range []string{"true", "false"} {
		t.Run("with a server whose filters are "+filters, func(t *testing.T) {
			remote := newRepo(t)
			remote.git("config", "uploadpack.allowFilter", filters)
			first := remote.git("rev-parse", "HEAD")
			remote.write("blog/second", "x")
			tip := remote.commit("Second")
			remote.git("checkout", "--quiet", "-b", "side")
			remote.write("blog/side", "x")
			tagged := remote.commit("Tagged")
			remote.git("tag", "--annotate", "--message=v1", "v1")
			remote.git("checkout", "--quiet", "main")
			remote.git("branch", "--quiet", "--delete", "--force", "side")

			for _, test := range []struct{ name, sha, ref string }{
				{"at the tip of a branch", tip, "refs/heads/main"},
				{"at an annotated tag", tagged, "refs/tags/v1"},
				{"behind a tip", first, "refs/heads/main"},
			} {
				t.Run(test.name, func(t *testing.T) {
					if ref, err := remote.reachable(test.sha); err != nil || ref != test.ref {
						t.Fatalf("ref %q, error %v; want %q", ref, err, test.ref)
					}
				})
			}
		})
	}
}

func TestACommitThatWasNotPushedIsNotReachable(t *testing.T) {
	remote := newRepo(t)
	clone := remote.clone()
	clone.write("blog/mine", "x")
	sha := clone.commit("Mine")
	_, err := remote.reachable(sha)
	var notPushed *NotPushedError
	if !errors.As(err, &notPushed) || notPushed.SHA != sha || !strings.Contains(err.Error(), "push it first") {
		t.Fatalf("error = %v", err)
	}
}

func TestACommitThatNoBranchHoldsAnyMoreIsNotReachable(t *testing.T) {
	remote := newRepo(t)
	remote.write("blog/second", "x")
	sha := remote.commit("Second")
	remote.git("reset", "--quiet", "--hard", "HEAD~1") // as a forced push leaves it: the object is there
	remote.git("config", "uploadpack.allowFilter", "true")
	remote.git("config", "uploadpack.allowAnySHA1InWant", "true") // and may be asked for, as on GitHub
	var notPushed *NotPushedError
	if _, err := remote.reachable(sha); !errors.As(err, &notPushed) {
		t.Fatalf("error = %v", err)
	}
}

func TestARemoteWithoutBranchesReachesNothing(t *testing.T) {
	var notPushed *NotPushedError
	if _, err := emptyRepo(t).reachable(strings.Repeat("a", 40)); !errors.As(err, &notPushed) {
		t.Fatalf("error = %v", err)
	}
}

func TestARemoteThatIsNotThereIsAnotherError(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	_, err := Reachable(t.Context(), "file://"+missing, strings.Repeat("a", 40), git.Credentials{})
	var notPushed *NotPushedError
	if err == nil || errors.As(err, &notPushed) {
		t.Fatalf("error = %v", err)
	}
}

func TestAShortSHAIsNoQuestionForARemote(t *testing.T) {
	if _, err := newRepo(t).reachable("abcdef1"); err == nil || !strings.Contains(err.Error(), "no full commit SHA") {
		t.Fatalf("error = %v", err)
	}
}

func TestTheFetchedHistoryIsRemoved(t *testing.T) {
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	remote := newRepo(t)
	first := remote.git("rev-parse", "HEAD")
	remote.commit("Second")
	if _, err := remote.reachable(first); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(temporary); err != nil || len(left) > 0 {
		t.Fatalf("left behind: %v, %v", left, err)
	}
}
