package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/layers/charts"
	"tazlab.net/castle/ci/cluster/layers/providers"
)

const lockEntry = `provider "registry.opentofu.org/bpg/proxmox" {
  version = "0.106.0"
  hashes = [
    "zh:released",
  ]
}
`

func TestWhatNothingPinsIsRefusedUnlessTheCallAllowsIt(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	fetched := write("fetched.hcl", lockEntry)
	downloads := write("charts/downloads.json", `[{"url": "https://charts.example/one.tgz", "digest": "sha256:0"}, {"url": "https://charts.example/two.tgz", "digest": "sha256:1", "pinned": true}]`)
	made := func(platform string, allow bool) *Cluster {
		states := filepath.Join(folder, "states")
		if err := os.MkdirAll(states, 0o700); err != nil {
			t.Fatal(err)
		}
		return &Cluster{Layers: folder, State: states, Tools: Tools{Charts: filepath.Dir(downloads), Providers: fetched},
			AllowUnpinned: allow, Description: &config.Cluster{Name: "blue", Platform: platform}}
	}

	err := made(config.PlatformProxmox, false).proven()
	for _, want := range []string{"https://charts.example/one.tgz", "registry.opentofu.org/bpg/proxmox 0.106.0", "dagger call pin export", "--allow-unpinned"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the refusal is %v, and does not say %s", err, want)
		}
	}
	if err != nil && strings.Contains(err.Error(), "two.tgz") {
		t.Errorf("what is pinned was refused: %v", err)
	}
	for name, cluster := range map[string]*Cluster{"allowed": made(config.PlatformProxmox, true), "a sandbox": made(config.PlatformSandbox, false)} {
		if err := cluster.proven(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}

	// A cluster that was created before has noted what it first used, and is taken over.
	old := made(config.PlatformProxmox, false)
	if err := charts.CheckDownloads(old.Tools.Charts, old.State); err != nil {
		t.Fatal(err)
	}
	if err := providers.CheckFetched(old.Tools.Providers, old.Layers, old.State); err != nil {
		t.Fatal(err)
	}
	if err := old.proven(); err != nil {
		t.Errorf("what was noted was refused: %v", err)
	}
	write("fetched.hcl", strings.Replace(lockEntry, "zh:released", "zh:another", 1))
	if err := old.proven(); err == nil || !strings.Contains(err.Error(), "bpg/proxmox 0.106.0") || strings.Contains(err.Error(), "one.tgz") {
		t.Errorf("another provider than was noted: %v", err)
	}
	write(providers.File, strings.Replace(lockEntry, "zh:released", "zh:another", 1))
	if err := old.proven(); err != nil {
		t.Errorf("what the repository pins was refused: %v", err)
	}
}
