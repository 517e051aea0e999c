package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"tazlab.net/castle/ci/base/filetest"
	"tazlab.net/castle/ci/test/world"
)

// newBlog is a clean working tree with this repository's blog, its castle.yaml, and one commit at a fixed time.
func newBlog(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "blog"), os.DirFS(filepath.Join(root(t), "blog"))); err != nil {
		t.Fatal(err)
	}
	// What Hugo left in the checkout is ignored there; here it would be committed.
	for _, made := range []string{"public", "resources", ".hugo_build.lock"} {
		if err := os.RemoveAll(filepath.Join(dir, "blog", made)); err != nil {
			t.Fatal(err)
		}
	}
	settings, err := os.ReadFile(filepath.Join(root(t), "castle.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	filetest.Write(t, filepath.Join(dir, "castle.yaml"), string(settings))
	world.Git(t, dir, "init", "--quiet", "--initial-branch=main")
	world.CommitAll(t, dir, "Write the blog")
	return dir
}

// newSite is a clean working tree with a site at its top and one commit.
func newSite(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		filetest.Write(t, filepath.Join(dir, name), text)
	}
	world.Git(t, dir, "init", "--quiet", "--initial-branch=main")
	world.CommitAll(t, dir, "Write the site")
	return dir
}

// root is this repository's working tree.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
