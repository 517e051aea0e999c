package proxmox

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	api "github.com/luthermonson/go-proxmox"

	"tazlab.net/castle/ci/sandbox/profile"
)

// of are the volumes that a storage has of a VM.
func (w *world) of(t *testing.T, id string) (volumes []string) {
	t.Helper()
	var content []api.StorageContent
	if err := w.client.Get(t.Context(), "/nodes/pve/storage/local-lvm/content?content=images&vmid="+id, &content); err != nil {
		t.Fatal(err)
	}
	for _, volume := range content {
		volumes = append(volumes, volume.Volid)
	}
	return volumes
}

// remove removes a VM and returns its task.
func (w *world) remove(t *testing.T, id int, unreferenced bool) *api.Task {
	t.Helper()
	task, err := w.vm(t, id).Delete(t.Context(), &api.VirtualMachineDeleteOptions{DestroyUnreferencedDisks: api.IntOrBool(unreferenced)})
	done(t, task, err)
	return task
}

func TestAVMGoesWhoseStorageDoesNotLetGoOfItsDisks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "proxmox.json")
	w := newWorld(t, func(o *Options) {
		o.Profile = profile.Profile{Faults: profile.Faults{profile.DiskStays: "521"}}
		o.File = file
	})
	w.configured(t, 521, "cp", "192.168.77.211/24", nil)
	w.mustClone(t, 522, "other")
	log, err := w.remove(t, 521, true).Log(t.Context(), 0, 50)
	const busy = "can't lock file '/var/lock/pve-manager/pve-storage-local-lvm' - got timeout"
	for _, line := range []string{"Could not remove disk 'local-lvm:vm-521-disk-0', check manually: " + busy, "Could not remove disk 'local-lvm:vm-521-cloudinit', check manually: " + busy, busy} {
		found := false
		for _, said := range log {
			found = found || said == line
		}
		if err != nil || !found {
			t.Errorf("its log is %v, %v, without %q", log, err, line)
		}
	}
	w.remove(t, 522, false)
	if got := w.of(t, "522"); got != nil {
		t.Errorf("of another VM there are %v", got)
	}
	left := []string{"local-lvm:vm-521-cloudinit", "local-lvm:vm-521-disk-0"}
	if got := w.of(t, "521"); !slices.Equal(got, left) {
		t.Errorf("there are %v", got)
	}
	w.end()

	w = newWorld(t, func(o *Options) { o.File = file })
	w.mustClone(t, 521, "next")
	if got := w.of(t, "521"); !slices.Equal(got, append(left, "local-lvm:vm-521-disk-1")) {
		t.Errorf("the next VM has a disk of %v", got)
	}
	if status, _ := w.raw(t, "PUT", "/api2/json/nodes/pve/qemu/521/config?ide2=local-lvm:cloudinit", tokenID+"="+tokenSecret); !strings.Contains(status, "already exists") {
		t.Errorf("it has a second cloud-init drive: %s", status)
	}
	w.remove(t, 521, false)
	if got := w.of(t, "521"); !slices.Equal(got, left) {
		t.Errorf("what it does not refer to is %v", got)
	}
	w.mustClone(t, 521, "last")
	w.remove(t, 521, true)
	if got := w.of(t, "521"); got != nil {
		t.Errorf("there are %v", got)
	}
}

func TestDisksAreListedForWhoMayUseThem(t *testing.T) {
	for held, want := range map[string]int{"Datastore.AllocateSpace VM.Config.Disk": 0, "Datastore.Audit": 0, "Datastore.Audit VM.Config.Disk": 1, "Datastore.Allocate Datastore.AllocateSpace": 1} {
		w := newWorld(t, func(o *Options) { o.Privileges = map[string][]string{"/": strings.Fields(held)} })
		if got := w.of(t, "900"); len(got) != want {
			t.Errorf("with %s: %v", held, got)
		}
	}
}
