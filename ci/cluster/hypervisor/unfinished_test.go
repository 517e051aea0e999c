package hypervisor

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/cluster/description"
)

func TestAMachineThatIsConfiguredIsNoLeftoverAnyMore(t *testing.T) {
	cluster, err := description.Load("../../../terragrunt/live/blue")
	if err != nil {
		t.Fatal(err)
	}
	machines, state := Open(cluster, nil, "castle@pve!token=secret"), t.TempDir()
	note := filepath.Join(state, unfinishedFile)
	if err := os.WriteFile(note, fmt.Appendf(nil, "[%d,%d]", cluster.Nodes[0].VMID, cluster.Nodes[1].VMID), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		node int
		want []string
	}{
		{2, []string{cluster.Nodes[0].Name, cluster.Nodes[1].Name}},
		{0, []string{cluster.Nodes[1].Name}},
		{0, []string{cluster.Nodes[1].Name}},
		{1, nil},
		{1, nil},
	} {
		if err := ForgetUnfinishedVM(state, cluster.Nodes[c.node].VMID); err != nil {
			t.Error(err)
		}
		if begun, err := machines.Begun(state); err != nil || !slices.Equal(begun, c.want) {
			t.Errorf("without node %d, %v are begun and not %v: %v", c.node, begun, c.want, err)
		}
	}
	if _, err := os.Stat(note); !os.IsNotExist(err) {
		t.Errorf("the note stays: %v", err)
	}
}

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
