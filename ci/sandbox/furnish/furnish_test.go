package furnish

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/newcluster"
	"tazlab.net/castle/ci/cluster/secrets"
)

func newSandbox(t *testing.T, clusters, name string) string {
	t.Helper()
	err := newcluster.Execute(clusters, "../../../terragrunt", clusters, "clusters/"+name,
		newcluster.Options{Name: name, Platform: config.PlatformSandbox, Subnet: "192.168.78.0/24", ControlPlanes: 3, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	folder := filepath.Join(clusters, name)
	if err := Execute(folder, Options{}); err != nil {
		t.Fatal(err)
	}
	return folder
}

func text(t *testing.T, folder, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// opened is a sandbox's description, and what its SOPS file holds.
func opened(t *testing.T, folder string) (*config.Cluster, *secrets.Values) {
	t.Helper()
	cluster, err := config.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	values, err := secrets.FromFiles(cluster, secrets.Inputs{Folder: folder, AgeKey: text(t, folder, KeyFile)})
	if err != nil {
		t.Fatal(err)
	}
	return cluster, values
}

func TestASandboxHasAllThatItsClusterIsMadeWith(t *testing.T) {
	folder := newSandbox(t, t.TempDir(), "green")
	cluster, values := opened(t, folder)
	seed := text(t, folder, "world.yaml")
	for _, name := range []string{secrets.ProxmoxAPIToken, secrets.InfisicalClientID, secrets.InfisicalClientSecret} {
		if value, has := values.Get(name); !has || !strings.Contains(seed, value) {
			t.Errorf("the world does not know %s", name)
		}
	}
	for _, want := range []string{"/clusters/green:", "registry: 192.168.78.13:5000", "repository: gitops", cluster.Secrets.Infisical.Project} {
		if !strings.Contains(seed, want) {
			t.Errorf("the world knows nothing of %s:\n%s", want, seed)
		}
	}
	if err := Execute(folder, Options{}); err == nil || !strings.Contains(err.Error(), "has its secrets already") {
		t.Errorf("it is furnished twice: %v", err)
	}
}

func TestASandboxsRegistryIsTheOneThatItsMachinesAskWithoutTLS(t *testing.T) {
	folder := newSandbox(t, t.TempDir(), "green")
	for _, name := range []string{"pve-root-ca.pem", "pve-root-ca.key", KeyFile, "world.yaml"} {
		if err := os.Remove(filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	described := text(t, folder, "cluster.yaml")
	write := func(from, to string) {
		t.Helper()
		changed := strings.ReplaceAll(described, from, to)
		if changed == described {
			t.Fatalf("cluster.yaml has no %s:\n%s", from, described)
		}
		if err := os.WriteFile(filepath.Join(folder, "cluster.yaml"), []byte(changed), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("192.168.78.13:5000", "registry.example.org")
	if err := Execute(folder, Options{}); err == nil || !strings.Contains(err.Error(), "talos.registryMirrors in cluster.yaml has no registry of the sandbox's own") {
		t.Errorf("without one: %v", err)
	}
	write("192.168.78.13:5000", "192.168.78.9:5001")
	if err := Execute(folder, Options{}); err != nil {
		t.Fatal(err)
	}
	if seed := text(t, folder, "world.yaml"); !strings.Contains(seed, "registry: 192.168.78.9:5001") {
		t.Errorf("another one:\n%s", seed)
	}
}

func TestNoTwoSandboxesShareASecret(t *testing.T) {
	clusters := t.TempDir()
	blue, green := newSandbox(t, clusters, "blue"), newSandbox(t, clusters, "green")
	for _, name := range []string{"age.key", "pve-root-ca.key", "pve-root-ca.pem"} {
		if text(t, blue, name) == text(t, green, name) {
			t.Errorf("both have the same %s", name)
		}
	}
	_, ours := opened(t, blue)
	_, others := opened(t, green)
	for name, value := range ours.All() {
		if other, has := others.Get(name); !has || other == value {
			t.Errorf("the SOPS files hold the same %s, or one lacks it", name)
		}
	}
	other := text(t, green, "world.yaml")
	for line := range strings.Lines(text(t, blue, "world.yaml")) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		for _, secret := range []string{"id", "secret", "GITOPS_TOKEN", "SOPS_AGE_KEY", "readToken", "token"} {
			if strings.TrimPrefix(key, "- ") == secret && !strings.HasPrefix(value, "900") && strings.Contains(other, value) {
				t.Errorf("both worlds have the same %s", key)
			}
		}
	}
}

func TestWhatIsNoSandboxGetsNoSecrets(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "blue")
	if err := os.CopyFS(folder, os.DirFS("../../../terragrunt/live/blue")); err != nil {
		t.Fatal(err)
	}
	before, _ := os.ReadDir(folder)
	if err := Execute(folder, Options{}); err == nil || !strings.Contains(err.Error(), "cluster blue is no sandbox") {
		t.Error(err)
	}
	if after, _ := os.ReadDir(folder); len(after) != len(before) {
		t.Errorf("there are now %v", after)
	}
}
