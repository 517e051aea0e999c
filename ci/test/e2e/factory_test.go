package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tazlab.net/castle/ci/test/needs"
)

// An empty folder becomes a repository with two clusters and a GitOps repository for one of them, and nothing of this repository is in it
// or was changed.
func TestAnEmptyFolderBecomesARepositoryOfClusters(t *testing.T) {
	needs.Most(t)
	folder := t.TempDir()
	in := func(args ...string) string {
		t.Helper()
		done := daggerIn(t, folder, nil, append([]string{"call", "--mod=" + root(t), "--auto-apply", "--progress=plain"}, args...)...)
		if done.err != nil {
			t.Fatalf("%v\n%s", done.err, done.stderr)
		}
		return done.stdout
	}
	for _, name := range []string{"green", "teal"} {
		in("new-cluster", "--repository=.", "--name="+name, "--platform=sandbox", "--subnet=192.168.78.0/24")
	}
	said := in("validate", "--repository=.")
	for _, want := range []string{"cluster green is described without mistakes: 3 control planes and 2 workers in 192.168.78.0/24, API at 192.168.78.210", "API at 192.168.78.180"} {
		if !strings.Contains(said, want) {
			t.Errorf("validate says no %q:\n%s", want, said)
		}
	}
	for _, name := range []string{"cluster.yaml", "README.md", "age.key", "world.yaml", "secrets.sops.yaml", "pve-root-ca.pem"} {
		if _, err := os.Stat(filepath.Join(folder, "clusters", "green", name)); err != nil {
			t.Error(err)
		}
	}
	in("gitops-repo", "--repository=.", "--cluster=green", "--domain=example.org", "--acme-email=me@example.org", "--blog-image=ghcr.io/me/blog", "--without=etcd-backup", "export", "--path=gitops")
	for _, name := range []string{"clusters/green/apps.yaml", "apps/base/hugo-blog/deployment.yaml", "README.md"} {
		if _, err := os.Stat(filepath.Join(folder, "gitops", filepath.FromSlash(name))); err != nil {
			t.Error(err)
		}
	}
	in("eject", "export", "--path=layers")
	if _, err := os.Stat(filepath.Join(folder, "layers", "units", "2-platform", "terragrunt.hcl")); err != nil {
		t.Error(err)
	}
	again := daggerIn(t, folder, nil, "call", "--mod="+root(t), "--auto-apply", "--progress=plain", "new-cluster", "--repository=.", "--name=green", "--subnet=192.168.78.0/24")
	if again.err == nil || !strings.Contains(again.stderr, "there is a cluster green already") {
		t.Errorf("a cluster is described twice: %v\n%s", again.err, again.stderr)
	}
	if _, err := os.Stat(filepath.Join(root(t), "clusters")); err == nil {
		t.Error("the module's own repository got clusters")
	}
}
