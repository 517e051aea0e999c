package e2e

import (
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/filetest"
	"tazlab.net/castle/ci/base/gitserver"
	"tazlab.net/castle/ci/test/needs"
	"tazlab.net/castle/ci/test/world"
)

func TestTheSourceMayBeAGitURLWithARef(t *testing.T) {
	needs.Most(t)
	if !ownEngine() {
		t.Skip("NOT RUN: only an engine on this machine reaches a Git remote on its loopback address")
	}
	w, source := world.New(t), newBlog(t)
	folder := t.TempDir()
	world.Git(t, source, "branch", "release")
	world.Git(t, folder, "clone", "--quiet", "--bare", source, filepath.Join(folder, "blog.git"))
	remote, err := gitserver.New(gitserver.Options{Root: folder, Token: "unused", AnonymousRead: true})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(remote)
	t.Cleanup(server.Close)

	result := publishJSON(t, w, server.URL+"/blog.git#release")
	if sha := world.Git(t, source, "rev-parse", "release"); result.Source.Commit != sha {
		t.Errorf("published %s, the ref is %s", result.Source.Commit, sha)
	}
}

func TestAFolderWithoutGitIsExplained(t *testing.T) {
	needs.Most(t)
	w := world.New(t)
	said := publishFails(t, w, filepath.Join(root(t), "blog", "content"))
	if !strings.Contains(said, "Git") {
		t.Errorf("it is not said that a Git working tree is wanted:\n%s", said)
	}
}

func TestAPreviewServesTheWorkingTreeAsItIs(t *testing.T) {
	needs.Most(t)
	w, source := world.New(t), newBlog(t)
	filetest.Write(t, filepath.Join(source, "blog/content/draft-note.md"), "---\ntitle: Not committed yet\n---\nSome words.\n")
	base := startService(t, root(t), w.Environment(), []string{"preview-blog", "--source=" + source, "--dirty"}, 8080)
	if _, body := get(t, base+"/draft-note/"); !strings.Contains(body, "Not committed yet") {
		t.Errorf("the page that is not committed is not served:\n%.300s", body)
	}
}
