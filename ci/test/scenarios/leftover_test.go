//go:build linux

package scenarios

import (
	"strings"
	"syscall"
	"testing"

	"tazlab.net/castle/ci/test/tell"
)

// TestDisksThatStayBehindAreNamed: Proxmox removes a VM whose disks' storage does not let go of them, and its task ends well.
func TestDisksThatStayBehindAreNamed(t *testing.T) {
	t.Parallel()
	const named, disk, drive = "VM 521 sandbox-cp-1 is gone, and its volume ", "local-lvm:vm-521-disk-0", "local-lvm:vm-521-cloudinit"
	w := newWorld(t, "none", "0", justPlatform()...)
	w.on("disk-stays=521")
	w.castle("create").succeeds()
	w.castle("destroy", "--confirm=sandbox").failsWith(named+disk, named+drive, `type "pvesm free `+disk+`" on pve`)
	w.nothingIsLeft()
	said := w.castle("destroy", "--confirm=sandbox").succeeds().stdout.String()
	if want := disk + " on pve has the id of sandbox-cp-1, whose VM was gone before: look whose it was"; !strings.Contains(said, want) {
		t.Errorf("a destroy that has nothing to do does not say %q:\n%s", want, said)
	}
	w.castle("create").failsWith("nothing was changed, and create cannot begin:", drive+" on pve has the id of sandbox-cp-1 and is of no VM: another one cannot be made")
	tell.Observation(t, 0, "%s", named+disk)
	w.off(syscall.SIGTERM)
}

// TestAWipeNamesDisksThatStayBehind, and takes the states away all the same.
func TestAWipeNamesDisksThatStayBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "none", "0", justPlatform()...)
	w.on("disk-stays=521")
	w.castle("create").succeeds()
	w.castle("nuclear-wipe", "--confirm=sandbox").failsWith("VM 521 sandbox-cp-1 is gone", `type "pvesm free local-lvm:vm-521-disk-0" on pve`)
	w.nothingIsLeft()
}
