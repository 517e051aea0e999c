package e2e

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tazlab.net/castle/ci/test/needs"
	"tazlab.net/castle/ci/test/world"
)

// leftOut are the parts of a GitOps repository whose charts come from the internet, and what belongs to them.
const leftOut = "--without=traefik,cert-manager,pull-secret,monitoring,notifications,etcd-backup,dagger,renovate"

// An empty folder, and the calls that the README shows for it: at the end a page is served from the image that a cluster of that folder's
// own description runs. The folder is no clone of this repository.
func TestANewcomersFolderEndsInAPublishedPage(t *testing.T) {
	needs.Most(t)
	folder := newSite(t, map[string]string{
		"castle.yaml": "gitops: {author: {name: A Newcomer, email: newcomer@example.org}}\n" +
			"sites:\n  blog: {path: blog, image: me/blog, manifest: apps/base/hugo-blog/deployment.yaml}\n",
		"blog/hugo.toml":         "baseURL = 'https://blog.example.org/'\ntitle = 'Newcomer'\ndisableKinds = ['taxonomy']\n",
		"blog/content/_index.md": "---\ntitle: Home\n---\nThe first words.\n",
		"blog/layouts/home.html": "<!doctype html><html lang=en><head><meta charset=utf-8><title>{{ .Title }}</title></head><body>{{ .Content }}</body></html>\n",
	})
	environment := []string{"DAGGER_MODULE=" + root(t)}
	in := func(args ...string) string {
		t.Helper()
		done := daggerIn(t, folder, environment, append([]string{"call", "--progress=plain"}, args...)...)
		if done.err != nil {
			t.Fatalf("%v\n%s", done.err, done.stderr)
		}
		return done.stdout
	}
	of := []string{"--repository=.", "--cluster=meadow"}
	on := func(verb string, args ...string) []string { return append(append([]string{verb}, of...), args...) }

	in("--auto-apply", "new-cluster", "--repository=.", "--name=meadow", "--platform=sandbox", "--subnet=192.168.79.0/24", "--empty-gitops")
	if _, err := os.Stat(filepath.Join(folder, "clusters", "meadow", "cluster.yaml")); err != nil {
		t.Fatal(err)
	}
	world.CommitAll(t, folder, "Describe a cluster")
	sha := world.Git(t, folder, "rev-parse", "HEAD")

	in(on("gitops-repo", "--domain=example.org", leftOut, "export", "--path=../"+filepath.Base(folder)+"-gitops")...)
	rendered := folder + "-gitops"
	t.Cleanup(func() { os.RemoveAll(rendered) })
	if text, err := os.ReadFile(filepath.Join(rendered, "apps", "base", "hugo-blog", "deployment.yaml")); err != nil || !strings.Contains(string(text), "192.168.79.13:5000/me/blog:") {
		t.Errorf("the rendered blog's image is not that of castle.yaml in the sandbox's registry: %v\n%s", err, text)
	}
	in("check-gitops", "--source="+rendered)

	in(on("gitops-repo-push", "--domain=example.org", leftOut, "--author-name=A Newcomer", "--author-email=newcomer@example.org")...)
	if again := daggerIn(t, folder, environment, append([]string{"call", "--progress=plain"}, on("gitops-repo-push", "--domain=example.org", leftOut,
		"--author-name=A Newcomer", "--author-email=newcomer@example.org")...)...); again.err == nil || !strings.Contains(again.stderr, "main") {
		t.Errorf("a remote that has a branch is pushed to: %v\n%s", again.err, again.stderr)
	}
	in(on("create")...)
	published := in(on("publish-blog", "--source=.", "--wait")...)
	if tag := "blog-" + sha[:7]; !strings.Contains(published, "192.168.79.13:5000/me/blog:"+tag) || !strings.Contains(published, "available") {
		t.Errorf("publish-blog says\n%s", published)
	}
	base := startService(t, folder, environment, on("serve-blog", "--source=.", "--tag=blog-"+sha[:7]), 80)
	if response, body := get(t, base+"/"); response.StatusCode != http.StatusOK || !strings.Contains(body, "The first words.") {
		t.Errorf("%s\n%s", response.Status, body)
	}
	in(on("destroy", "--confirm=meadow")...)
	if status := in(on("status")...); !strings.Contains(status, "absent") {
		t.Errorf("after destroy, status says\n%s", status)
	}
}
