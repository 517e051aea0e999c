package layers_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"tazlab.net/castle/ci/cluster/layers/providers"
	"tazlab.net/castle/ci/test/needs"
)

func TestProvidersAreDownloadedOnceAndNoRegistryIsAskedAgain(t *testing.T) {
	r := newRunner(t)
	program := filepath.Join(needs.Tool(t, "provider-proxmox"), "terraform-provider-proxmox")
	good, evil := packed(t, program, ""), packed(t, program, "\x00")
	release := good
	r.fromAMirror(t, &release)
	for _, name := range []string{"TF_CLI_CONFIG_FILE", "SSL_CERT_FILE"} {
		t.Setenv(name, r.env[name])
	}
	pins := t.TempDir()
	write := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(pins, "root.hcl"), "source = \"bpg/proxmox\"\n      version = \"0.106.0\"\n")
	fetch := func() (string, error) {
		dest := filepath.Join(t.TempDir(), "made")
		return dest, providers.Fetch(t.Context(), r.env["TG_TF_PATH"], pins, dest)
	}
	made, err := fetch()
	if err != nil {
		t.Fatal(err)
	}
	lock := filepath.Join(made, providers.File)

	// OpenTofu finds it in the folder, with nobody to ask.
	settings := filepath.Join(t.TempDir(), "tofurc")
	write(settings, "provider_installation {\n  filesystem_mirror {\n    path = \""+filepath.Join(made, providers.FetchedFolder)+"\"\n  }\n}\n")
	unit := t.TempDir()
	write(filepath.Join(unit, "main.tf"), "terraform {\n  required_providers {\n    proxmox = { source = \"bpg/proxmox\", version = \"0.106.0\" }\n  }\n}\nprovider \"proxmox\" {}\n")
	for _, args := range [][]string{{"init", "-input=false"}, {"validate"}} {
		command := exec.CommandContext(t.Context(), r.env["TG_TF_PATH"], args...)
		command.Dir, command.Env = unit, append(os.Environ(), "TF_CLI_CONFIG_FILE="+settings)
		if out, err := command.CombinedOutput(); err != nil {
			t.Fatalf("tofu %s: %v\n%s", args[0], err, out)
		}
	}

	// Where nobody has written hashes down, a cluster's first use decides; where somebody has, nothing else is unpacked.
	states := t.TempDir()
	if err := providers.CheckFetched(lock, pins, states); err != nil {
		t.Errorf("the first use: %v", err)
	}
	release = evil
	other, err := fetch()
	if err != nil {
		t.Fatal(err)
	}
	otherLock := filepath.Join(other, providers.File)
	if err := providers.CheckFetched(otherLock, pins, states); err == nil || !strings.Contains(err.Error(), "is not the one that this cluster first used") {
		t.Errorf("another byte than at the first use: %v", err)
	}
	text, err := os.ReadFile(lock)
	if err != nil {
		t.Fatal(err)
	}
	write(filepath.Join(pins, providers.File), string(text))
	if _, err := fetch(); err == nil || !strings.Contains(strings.Join(strings.Fields(err.Error()), " "), "match any of the checksums") {
		t.Errorf("another byte than the repository says: %v", err)
	}
	release = good
	if _, err := fetch(); err != nil {
		t.Errorf("what the repository says: %v", err)
	}
	if err := providers.CheckFetched(otherLock, pins, states); err != nil {
		t.Errorf("where the repository decides, the first use does not: %v", err)
	}
	if err := providers.CheckFetched(filepath.Join(t.TempDir(), "none"), pins, states); err != nil {
		t.Errorf("providers that came with the tools: %v", err)
	}
}
