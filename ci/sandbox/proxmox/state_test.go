package proxmox

import (
	"os"
	"path/filepath"
	"testing"
)

// A world that was made before VMs had UUIDs has the same ones whenever it is read.
func TestVMsOfAnOlderStateHaveUUIDs(t *testing.T) {
	file := filepath.Join(t.TempDir(), "proxmox.json")
	if err := os.WriteFile(file, []byte(`{"guests": {"521": {"id": 521, "config": {"name": "cp"}}, "522": {"id": 522, "config": {"smbios1": "uuid=x"}}}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		loaded, err := load(file)
		if err != nil {
			t.Fatal(err)
		}
		if got := loaded.Guests[521].Config[smbios] + " " + loaded.Guests[522].Config[smbios]; got != "uuid=00000000-0000-4000-8000-000000000521 uuid=x" {
			t.Errorf("they have %s", got)
		}
	}
}
