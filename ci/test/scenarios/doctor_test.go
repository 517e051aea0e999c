//go:build linux

package scenarios

import (
	"encoding/json"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"tazlab.net/castle/ci/cluster/doctor"
	"tazlab.net/castle/ci/cluster/preflight"
)

// doctor is what castle says of what the cluster stands on, by group and name.
func (w *world) doctor() (map[string][]preflight.Row, *called) {
	w.t.Helper()
	c := w.start(w.live, []string{doctor.PushTokenVariable + "=" + w.seed().Git.Token}, "doctor", "--format=json", "--engine=v0.19.10", "--made-for=v0.19.10")
	c.wait(time.Minute)
	var report doctor.Report
	if err := json.Unmarshal(c.stdout.Bytes(), &report); err != nil {
		w.t.Fatalf("%v:\n%s%s", err, c.stdout.String(), c.stderr.String())
	}
	rows := map[string][]preflight.Row{}
	for _, row := range report.Rows {
		name := row.Group + " " + row.Name
		rows[name] = append(rows[name], row)
	}
	if exit := c.command.ProcessState.ExitCode(); (exit == 1) != (report.Failed > 0) {
		w.t.Errorf("%d rows have failed, and the exit code is %d", report.Failed, exit)
	}
	return rows, c
}

// allIsOK fails the test where a row is not.
func (w *world) allIsOK() {
	w.t.Helper()
	rows, c := w.doctor()
	for name, row := range rows {
		if len(row) != 1 || row[0].Verdict != preflight.OK {
			w.t.Errorf("%s: %+v", name, row)
		}
	}
	if len(rows) == 0 {
		w.t.Error("doctor has no rows")
	}
	w.t.Logf("doctor took %s", c.took.Round(10*time.Millisecond))
}

// TestDoctorNamesAllThatIsWrong: all of it at once, each with its fix, and create does not begin. What is well is said to be, before the
// cluster is there and after it.
func TestDoctorNamesAllThatIsWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "none", "0", justPlatform()...)
	w.on("privilege-missing=VM.Clone,SDN.Use", "storage-full=local-lvm", "clock-skew=10m", "address-taken=192.168.77.214", "secret-missing=SOPS_AGE_KEY")
	rows, _ := w.doctor()
	wrong := map[string][]string{
		"secrets complete":   {"SOPS_AGE_KEY is missing"},
		"Proxmox privileges": {"the token lacks VM.Clone on /vms/900", "the token lacks SDN.Use on /sdn/zones/localnetwork/vmbr0"},
		"Proxmox storage":    {"local-lvm on pve has 1 GiB free, and 320 GiB of disks are to be made"},
		"network addresses":  {"somebody answers at 192.168.77.214, the address of node sandbox-worker-1 (port 22 accepts connections)"},
		"network clocks":     {"ahead of this machine's clock"},
	}
	for name, found := range rows {
		for i, row := range found {
			want := wrong[name]
			switch {
			case name == "Proxmox bridge": // its row says to look at the privileges
				if row.Verdict != preflight.NotChecked {
					t.Errorf("%s: %+v", name, row)
				}
			case want == nil && row.Verdict != preflight.OK, want != nil && (row.Verdict != preflight.Failed || row.Fix == "" || len(found) != len(want) || !strings.Contains(row.Seen, want[i])):
				t.Errorf("%s: %+v, want %q", name, row, want)
			}
		}
	}
	refused := w.castle("create").failsWith("nothing was changed, and create cannot begin:", "SOPS_AGE_KEY is missing", resumes)
	for name, seen := range wrong {
		for _, text := range seen {
			if name != "secrets complete" {
				refused.failsWith("\n  "+name+": ", text)
			}
		}
	}
	if vms := w.vms(); len(vms) != 1 {
		t.Errorf("Proxmox has %+v", vms)
	}
	if w.infisical()["TALOS_SECRETS"] != "" {
		t.Error("the machine secrets were made")
	}

	w.off(syscall.SIGTERM)
	w.on("clock-skew=-1m")
	if rows, _ := w.doctor(); rows["network clocks"][0].Verdict != preflight.Warning {
		t.Errorf("a minute: %+v", rows["network clocks"])
	}
	w.off(syscall.SIGTERM)
	w.on()
	w.allIsOK()
	w.castle("create").succeeds()
	w.allIsOK()

	// A token that must not remove the machines is known before anything on them is gone.
	w.off(syscall.SIGTERM)
	w.on("privilege-missing=VM.Allocate")
	vms := w.vms()
	w.castle("destroy", "--confirm=sandbox").failsWith("nothing was removed: the Proxmox token must not remove the VMs, since it lacks VM.Allocate on /vms/521, /vms/522", "to go on where it stopped: dagger call destroy --cluster sandbox")
	if got := w.vms(); !slices.Equal(got, vms) {
		t.Errorf("Proxmox had %+v and has %+v", vms, got)
	}
	w.off(syscall.SIGTERM)
	w.on()
	w.castle("destroy", "--confirm=sandbox").succeeds()
	w.allIsOK()
	w.leaksNothing()
}
