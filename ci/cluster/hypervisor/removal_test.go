package hypervisor

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	proxmoxapi "github.com/luthermonson/go-proxmox"

	"tazlab.net/castle/ci/sandbox/proxmox"
)

// A host that lost its power while it cloned leaves such a lock behind; a token must not remove it.
func TestALockThatNobodyHoldsIsNamedWithItsCure(t *testing.T) {
	const cure = `type "qm unlock 421" on pve`
	locked := guest(421, "blue-cp-1", "castle-blue")
	locked.Running, locked.Config = false, map[string]string{"lock": "clone"}

	h := hostWith(t, proxmox.Options{}, locked)
	listed, _, err := h.Condemned(t.Context(), nil)
	if err != nil || len(listed) != 1 {
		t.Fatal(listed, err)
	}
	if _, err := h.Remove(t.Context(), listed[0], nil, func(string) {}); err == nil || !strings.Contains(err.Error(), cure) {
		t.Errorf("a wipe: %v", err)
	}

	locked.Tags = nil
	h = hostWith(t, proxmox.Options{}, locked)
	var told []string
	err = h.RemoveUnfinished(t.Context(), Unfinished{Begun: []int{421}, Known: nothing}, func(removal Removal) error {
		told = append(told, fmt.Sprint(removal.Step, ": ", removal.Waiting, removal.Ended, removal.Err != nil))
		return nil
	})
	if err == nil || !strings.Contains(err.Error(), "VM 421 was left unfinished by an earlier create") || !strings.Contains(err.Error(), cure) {
		t.Errorf("what an earlier create left: %v", err)
	}
	if want := "VM 421: false false|VM 421: an earlier create left it unfinished: locked (clone)false false|VM 421: true true"; strings.Join(told, "|") != want {
		t.Errorf("it was told\n%s, not\n%s", strings.Join(told, "|"), want)
	}
}

func TestATaskThatEndedWithWarningsHasDoneItsWork(t *testing.T) {
	for exit, fails := range map[string]bool{"OK": false, "WARNINGS: 1": false, "unable to read tail (got 0 bytes)": true, "WARNINGS of another kind": true} {
		const upid = "UPID:pve:0000ABCD:00ABCDEF:68000000:qmstart:421:castle@pve!token:"
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = fmt.Fprintf(w, `{"data": {"upid": %q, "node": "pve", "status": "stopped", "exitstatus": %q}}`, upid, exit)
		}))
		client := proxmoxapi.NewClient(server.URL)
		err := ended(t.Context(), func(context.Context) (*proxmoxapi.Task, error) { return proxmoxapi.NewTask(upid, client), nil })
		if (err != nil) != fails {
			t.Errorf("%s: %v", exit, err)
		}
		server.Close()
	}
}

// Whose token lacks Sys.Audit is shown no task, and must not take a clone under way for one that nobody works on.
func TestAVMMayBeWorkedOnWhereNoTasksAreSeen(t *testing.T) {
	for privilege, busy := range map[string]bool{"Sys.Audit": false, "VM.Audit": true} {
		h := hostSeenBy(t, map[string][]string{"/": {privilege, "VM.Allocate"}}, guest(421, "blue-cp-1", "castle-blue").VM)
		if got, err := h.busy(t.Context(), 421); err != nil || got != busy {
			t.Errorf("with %s: %t, %v", privilege, got, err)
		}
	}
}
