package proxmox

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	api "github.com/luthermonson/go-proxmox"

	"tazlab.net/castle/ci/sandbox/profile"
)

// Every privilege is refused where it is used, as Proxmox's own API asks for it, and nothing else is.
func TestAMissingPrivilegeIsRefusedWhereItIsUsed(t *testing.T) {
	for privilege, call := range map[string]struct{ method, path, body, on string }{
		"VM.Audit":         {"GET", "/nodes/pve/qemu/521/config", "", "/vms/521"},
		"VM.Clone":         {"POST", "/nodes/pve/qemu/900/clone", "newid=522&full=1", "/vms/900"},
		"VM.Allocate":      {"POST", "/nodes/pve/qemu/900/clone", "newid=522&full=1", "/vms/522"},
		"SDN.Use":          {"POST", "/nodes/pve/qemu/900/clone", "newid=522&full=1", "/sdn/zones/localnetwork/vmbr0"},
		"VM.PowerMgmt":     {"POST", "/nodes/pve/qemu/521/status/start", "", "/vms/521"},
		"VM.Config.CPU":    {"PUT", "/nodes/pve/qemu/521/config", "cores=2", "/vms/521"},
		"VM.Config.Memory": {"PUT", "/nodes/pve/qemu/521/config", "memory=2048", "/vms/521"},
		"VM.Config.HWType": {"PUT", "/nodes/pve/qemu/521/config", "scsihw=virtio-scsi-pci", "/vms/521"},
		// The order of the options is that of their names.
		"VM.Config.Options":       {"PUT", "/nodes/pve/qemu/521/config", "onboot=1&cores=2", "/vms/521"},
		"VM.Config.Network":       {"PUT", "/nodes/pve/qemu/521/config", "net0=virtio,bridge=vmbr0", "/vms/521"},
		"VM.Config.CDROM":         {"PUT", "/nodes/pve/qemu/521/config", "ide2=local-lvm:cloudinit", "/vms/521"},
		"VM.Config.Cloudinit":     {"PUT", "/nodes/pve/qemu/521/config", "ide2=local-lvm:cloudinit", "/vms/521"},
		"VM.Config.Disk":          {"PUT", "/nodes/pve/qemu/521/resize", "disk=scsi0&size=20G", "/vms/521"},
		"Datastore.AllocateSpace": {"PUT", "/nodes/pve/qemu/521/resize", "disk=scsi0&size=20G", "/storage/local-lvm"},
		"Sys.Audit":               {"GET", "/nodes/pve/status", "", "/nodes/pve"},
	} {
		t.Run(privilege, func(t *testing.T) {
			for name, missing := range map[string]string{"missing": privilege, "there": "VM.Backup"} {
				w := newWorld(t, func(o *Options) { o.Profile.Faults = profile.Faults{profile.PrivilegeMissing: missing} })
				if err := w.Seed(Guest{VM: VM{ID: 521, Name: "cp", Disks: []Disk{{Interface: "scsi0", Bytes: gib}}}}); err != nil {
					t.Fatal(err)
				}
				request, err := http.NewRequestWithContext(t.Context(), call.method, w.http.URL+"/api2/json"+call.path, strings.NewReader(call.body))
				if err != nil {
					t.Fatal(err)
				}
				request.Header.Set("Authorization", "PVEAPIToken="+tokenID+"="+tokenSecret)
				request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
				response, err := w.http.Client().Do(request)
				if err != nil {
					t.Fatal(err)
				}
				response.Body.Close()
				want := "403 Permission check failed (" + call.on + ", " + privilege + ")"
				if name == "there" && response.StatusCode != http.StatusOK || name == "missing" && response.Status != want {
					t.Errorf("%s: Proxmox answers %q", name, response.Status)
				}
			}
		})
	}
}

// Each VLAN of a bridge has a path of its own, and a tag is a number of IEEE 802.1Q.
func TestANetworkCardsTagIsJudged(t *testing.T) {
	for held, want := range map[string]string{"/sdn/zones/localnetwork/vmbr0": "", "/sdn/zones/localnetwork/vmbr0/42": "",
		"/sdn/zones/localnetwork/vmbr0/41": "403 Permission check failed (/sdn/zones/localnetwork/vmbr0/42, SDN.Use)"} {
		w := newWorld(t, func(o *Options) { o.Privileges = map[string][]string{"/vms": {"VM.Config.Network"}, held: {"SDN.Use"}} })
		if err := w.Seed(Guest{VM: VM{ID: 521, Name: "cp", Disks: []Disk{{Interface: "scsi0", Bytes: gib}}}}); err != nil {
			t.Fatal(err)
		}
		for tag, refused := range map[string]bool{"42": false, "4095": true, "0": true} {
			request, err := http.NewRequestWithContext(t.Context(), "PUT", w.http.URL+"/api2/json/nodes/pve/qemu/521/config", strings.NewReader("net0=virtio,bridge=vmbr0,tag="+tag))
			if err != nil {
				t.Fatal(err)
			}
			request.Header.Set("Authorization", "PVEAPIToken="+tokenID+"="+tokenSecret)
			request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			response, err := w.http.Client().Do(request)
			if err != nil {
				t.Fatal(err)
			}
			response.Body.Close()
			switch {
			case refused && response.StatusCode == http.StatusOK:
				t.Errorf("the tag %s is taken", tag)
			case !refused && want == "" && response.StatusCode != http.StatusOK, !refused && want != "" && response.Status != want:
				t.Errorf("with SDN.Use on %s, Proxmox answers %q", held, response.Status)
			}
		}
	}
}

func TestATokenIsToldItsOwnPrivileges(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.Privileges = map[string][]string{"/": {"VM.Audit", "VM.Clone", "VM.PowerMgmt"}, "/vms/521": {"VM.Audit", "VM.Clone"}}
		o.Profile.Faults = profile.Faults{profile.PrivilegeMissing: "VM.Clone"}
	})
	whole, err := w.client.Permissions(t.Context(), nil)
	if err != nil || !bool(whole["/vms"]["VM.Audit"]) || len(whole["/vms"]) != 2 || len(whole["/vms/521"]) != 1 {
		t.Errorf("all that the token may: %v, %v", whole, err)
	}
	if here, err := w.client.Permissions(t.Context(), &api.PermissionsOptions{Path: "/vms/900"}); err != nil || len(here) != 1 || len(here["/vms/900"]) != 2 {
		t.Errorf("on the template: %v, %v", here, err)
	}
	if _, err := New(Options{File: "x", Tokens: []string{tokenID + "=" + tokenSecret}, Privileges: map[string][]string{"/": {"VM.Clon"}}}); err == nil {
		t.Error("a privilege that there is not was taken")
	}
}

// What may not be seen is left out of a list, without a word.
func TestListsLeaveOutWhatMayNotBeSeen(t *testing.T) {
	w := newWorld(t, func(o *Options) { o.Privileges = map[string][]string{"/": {"Sys.Audit"}} })
	for path, want := range map[string]string{"/cluster/resources?type=vm": "[]", "/cluster/resources?type=storage": "[]", "/nodes/pve/qemu": "[]",
		"/nodes/pve/storage": "[]", "/nodes/pve/network": "[]"} {
		if _, body := w.raw(t, "GET", "/api2/json"+path, tokenID+"="+tokenSecret); !strings.Contains(body, `"data":`+want) {
			t.Errorf("%s: %s", path, body)
		}
	}
	w = newWorld(t, func(o *Options) {
		o.Privileges = map[string][]string{"/": slices.DeleteFunc(slices.Clone(everything["/"]), func(p string) bool { return p == "Sys.Audit" })}
	})
	w.mustClone(t, 521, "cp")
	if _, body := w.raw(t, "GET", "/api2/json/cluster/tasks", tokenID+"="+tokenSecret); !strings.Contains(body, `"data":[]`) {
		t.Errorf("the tasks are %s", body)
	}
}

func TestAHostsFaultsAreSeen(t *testing.T) {
	w := newWorld(t, func(o *Options) {
		o.Profile.Faults = profile.Faults{profile.StorageFull: "local-lvm", profile.ClockSkew: "-7m"}
	})
	task, err := w.cloneTask(t.Context(), t, 521, "cp")
	if err == nil {
		err = task.WaitFor(t.Context(), 10)
	}
	if err != nil || !task.IsFailed {
		t.Errorf("a clone to a full storage: %+v, %v", task, err)
	}
	response, err := w.http.Client().Head(w.http.URL) // without a token
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if at, err := http.ParseTime(response.Header.Get("Date")); err != nil || w.clock().Sub(at).Abs().Seconds() > 5 {
		t.Errorf("the host dates its answer %q, %v", response.Header.Get("Date"), err)
	}
}
