package hypervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tazlab.net/castle/ci/cluster/description"
)

// A disk that was full, or a power cut, cut the note off. Nothing is asked of Proxmox then, and nothing removed.
func TestABrokenNoteIsToldAndSetAside(t *testing.T) {
	cluster, err := description.Load("../../../terragrunt/live/blue")
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"", "[421, 4", `{"vms": 1}`} {
		state := t.TempDir()
		if err := os.WriteFile(filepath.Join(state, unfinishedFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		machines := Open(cluster, nil, "castle@pve!token=secret")
		var told []string
		err := machines.RemoveUnfinished(t.Context(), state, nil, func(removal Removal) error {
			told = append(told, fmt.Sprint(removal.Step, ": ", removal.Waiting, removal.Ended))
			return nil
		})
		if err != nil || len(told) != 3 || !strings.Contains(told[1], "is now unfinished-vms.json.broken") {
			t.Errorf("%q: %v, told %q", text, err, told)
		}
		if kept, err := os.ReadFile(filepath.Join(state, unfinishedFile+".broken")); err != nil || string(kept) != text {
			t.Errorf("%q: kept is %q, %v", text, kept, err)
		}
		if begun, err := machines.Begun(state); err != nil || begun != nil {
			t.Errorf("%q: afterwards %v are begun, %v", text, begun, err)
		}
	}
}
