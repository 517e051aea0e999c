//go:build linux

package scenarios

import (
	"os"
	"path/filepath"
	"testing"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/newcluster"
	"tazlab.net/castle/ci/sandbox/furnish"
	"tazlab.net/castle/ci/test/needs"
)

// newSandboxes are worlds of clusters that new-cluster describes in one folder of clusters, for the same layers.
func newSandboxes(t *testing.T, names ...string) []*world {
	t.Helper()
	layers := filepath.Join(t.TempDir(), "terragrunt")
	if err := os.CopyFS(layers, os.DirFS(filepath.Join(repository, "terragrunt"))); err != nil {
		t.Fatal(err)
	}
	clusters := filepath.Join(layers, "live")
	var worlds []*world
	for _, name := range names {
		options := newcluster.Options{Name: name, Platform: config.PlatformSandbox, Subnet: "192.168.78.0/24", ControlPlanes: 3, Workers: 2}
		if err := newcluster.Execute(clusters, layers, clusters, "clusters/"+name, options); err != nil {
			t.Fatal(err)
		}
		w := &world{t: t, kit: tools(t), folder: t.TempDir(), profile: "none", scale: "0", live: filepath.Join(clusters, name)}
		if err := furnish.Execute(w.live, furnish.Options{}); err != nil {
			t.Fatal(err)
		}
		var err error
		if w.cluster, err = config.Load(w.live); err != nil {
			t.Fatal(err)
		}
		w.disk = w.folder
		w.linkPlugins()
		worlds = append(worlds, w)
	}
	return worlds
}

// TestNewSandboxes is about two clusters that new-cluster described: they come up beside each other, and are two.
func TestNewSandboxes(t *testing.T) {
	needs.Slow(t)
	t.Parallel()
	worlds := newSandboxes(t, "green", "teal")
	var creates []*called
	for _, w := range worlds {
		w.on()
		creates = append(creates, w.start(w.live, nil, "create"))
	}
	var secrets [2]map[string]string
	for i, w := range worlds {
		creates[i].wait(patience)
		creates[i].succeeds()
		w.hasExactlyItsVMs()
		w.kubernetes(w.unsealed("kubeconfig")).hasNodes()
		w.isWell()
		secrets[i] = w.infisical()
	}
	for name, value := range secrets[0] {
		if name != "GITOPS_USERNAME" && secrets[1][name] == value {
			t.Errorf("both have the same %s", name)
		}
	}
	green, teal := worlds[0], worlds[1]
	green.castle("destroy", "--confirm=green").succeeds()
	green.nothingIsLeft()
	teal.isWell()
}
