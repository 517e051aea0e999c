package providers

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const address = "registry.opentofu.org/bpg/proxmox"

func entry(version string, hashes ...string) string {
	return "provider \"" + address + "\" {\n  version     = \"" + version + "\"\n  constraints = \"" + version + "\"\n  hashes = [\n    \"" +
		strings.Join(hashes, "\",\n    \"") + "\",\n  ]\n}\n"
}

func write(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestTheRepositorysHashesComeBeforeThoseOfTheFirstUse(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	terragrunt, states := t.TempDir(), t.TempDir()
	lock := func(text string) string {
		return write(t, filepath.Join(t.TempDir(), LockFile), "# Made by tofu init.\n\n"+text)
	}
	if err := Note(lock(entry("0.80.0", "h1:a", "zh:b")), states); err != nil {
		t.Fatal(err)
	}
	if err := Note(lock(entry("0.81.0", "h1:x")), states); err != nil {
		t.Errorf("another version: %v", err)
	}
	// On another platform, OpenTofu has compared with zh:b.
	if err := Note(lock(entry("0.80.0", "h1:a", "h1:c", "zh:b")), states); err != nil {
		t.Errorf("more hashes: %v", err)
	}
	if err := Note(lock(entry("0.80.0", "h1:evil", "zh:evil")), states); err == nil || !strings.Contains(err.Error(), address+" 0.80.0 is not the one that this cluster first used") {
		t.Errorf("other hashes: %v", err)
	}
	known := func() map[string]string {
		t.Helper()
		locks, err := Known(terragrunt, states)
		if err != nil {
			t.Fatal(err)
		}
		return locks[address]
	}
	if got := known(); len(got) != 2 || got["0.80.0"] != entry("0.80.0", "h1:a", "h1:c", "zh:b") {
		t.Errorf("known: %q", got)
	}
	write(t, filepath.Join(terragrunt, File), entry("0.80.0", "zh:reviewed"))
	if got := known(); got["0.80.0"] != entry("0.80.0", "zh:reviewed") || got["0.81.0"] == "" {
		t.Errorf("with the repository's: %q", got)
	}

	// What came with the tools is another build.
	folder := filepath.Join(os.TempDir(), ".terraform.d/plugins", address)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := known(); got != nil {
		t.Errorf("of a provider that is a file: %q", got)
	}
	if err := Note(lock(entry("0.80.0", "h1:built")), states); err != nil {
		t.Errorf("of a provider that is a file: %v", err)
	}
}

func TestALockFileThatCannotBeReadProvesNothingAndIsRefused(t *testing.T) {
	for _, text := range []string{
		"provider \"" + address + "\" { version = \"0.80.0\" }\n", entry("0.80.0"), strings.TrimSuffix(entry("0.80.0", "h1:a"), "}\n"),
		strings.Replace(entry("0.80.0", "h1:a"), "version ", "Version ", 1), "bpg/proxmox 0.80.0\n", entry("0.80.0", "h1:a") + "provider \"x\" {}\n",
		strings.Replace(entry("0.80.0", "h1:a"), "bpg", "..", 1),
	} {
		terragrunt := t.TempDir()
		write(t, filepath.Join(terragrunt, File), text)
		if locks, err := Known(terragrunt, t.TempDir()); err == nil || !strings.Contains(err.Error(), "tofu providers lock") {
			t.Errorf("%q: %v, %v", text, locks, err)
		}
	}
}
