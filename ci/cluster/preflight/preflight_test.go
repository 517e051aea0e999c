package preflight

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/cluster/secrets"
	"tazlab.net/castle/ci/sandbox/profile"
	"tazlab.net/castle/ci/sandbox/proxmox"
)

func TestNothingIsWrongWhereNothingIs(t *testing.T) {
	for name, rows := range newWorld(t, nil).rows() {
		if len(rows) != 1 || rows[0].Verdict != OK {
			t.Errorf("%s: %+v", name, rows)
		}
	}
}

// twoHosts has a second Proxmox node, on which one node of the cluster shall stand; templates stands in the place of the template.
func twoHosts(templates string, more func(*world)) func(*world) {
	return func(w *world) {
		w.text = []string{"vmID: 424, host: proxmox", "vmID: 424, host: pve9", "template: 900", templates}
		w.proxmox.Nodes = append(w.proxmox.Nodes, proxmox.Node{Name: "pve9"})
		w.guests[0].Disks = []proxmox.Disk{{Interface: "scsi0", Volume: "local-lvm:base-900-disk-0", Bytes: gib}}
		more(w)
	}
}

// linkedClones has a template with a disk, of which linked clones shall be made.
func linkedClones(more func(*world)) func(*world) {
	return func(w *world) {
		w.text = []string{"template: 900", "template: 900\n  linkedClones: true"}
		w.guests[0].Disks = []proxmox.Disk{{Interface: "scsi0", Volume: "local-lvm:base-900-disk-0", Bytes: gib}}
		more(w)
	}
}

// Each story spoils one thing, and says which rows tell of it. No other row fails.
func TestWhatIsWrongIsToldOnceAndWithItsFix(t *testing.T) {
	type told struct {
		verdict   Verdict
		seen, fix string
	}
	fault := func(name, value string) func(*world) {
		return func(w *world) { w.proxmox.Profile.Faults = profile.Faults{name: value} }
	}
	yaml := func(pairs ...string) func(*world) { return func(w *world) { w.text = pairs } }
	ours := func(id int, name string) proxmox.Guest {
		return proxmox.Guest{Running: true, VM: proxmox.VM{ID: id, Name: name, Tags: []string{"castle-blue"}}}
	}
	for name, story := range map[string]struct {
		spoil func(*world)
		want  map[string]told
	}{
		"an engine of another version": {func(w *world) { w.asked.Engine, w.asked.MadeFor = "v0.20.1", "v0.19.10" }, map[string]told{
			"engine version": {Warning, "Dagger v0.20.1, and castle was made for v0.19.10", "an engine and a dagger command of v0.19.10"}}},
		"an engine that only has mended something": {func(w *world) { w.asked.Engine, w.asked.MadeFor = "v0.19.11", "v0.19.10" }, map[string]told{
			"engine version": {OK, "Dagger v0.19.11", ""}}},
		"a disk that is nearly full": {func(w *world) { w.free = 500 << 20 }, map[string]told{
			"engine disk": {Warning, "500 MiB are free where states", "free some of the disk that the engine's cache is on"}}},
		"a full disk": {func(w *world) { w.free = 1 << 20 }, map[string]told{
			"engine disk": {Failed, "1 MiB are free where states", "free some of the disk that the engine's cache is on"}}},
		"a registry that refuses one of two images": {func(w *world) {
			w.asked.Images = []string{"ghcr.io/me/blog", "ghcr.io/me/wiki"}
			w.asked.MayPush = func(_ context.Context, image string) error {
				if image == "ghcr.io/me/wiki" {
					return errors.New("the registry ghcr.io refused access (403)")
				}
				return nil
			}
		}, map[string]told{"registry images": {Failed, "the registry ghcr.io refused access (403)", "check ghcr.io/me/wiki in castle.yaml"}}},
		"a registry that answers": {func(w *world) {
			w.asked.Images, w.asked.Anonymous = []string{"ghcr.io/me/blog"}, true
			w.asked.MayPush = func(context.Context, string) error { return nil }
		}, map[string]told{"registry images": {OK, "the registry of ghcr.io/me/blog answers", ""}}},
		"no Terragrunt": {func(w *world) { w.terragrunt = "; exit 3" }, map[string]told{
			"tools programs": {Failed, "Terragrunt does not run: exit status 3", "castle tool terragrunt"}}},
		"a secret is missing in each source": {func(w *world) {
			delete(w.remote, secrets.GitOpsToken)
			delete(w.sops, secrets.AWSSecretAccessKey)
		}, map[string]told{
			"secrets complete": {Failed, "AWS_SECRET_ACCESS_KEY is missing in ", "sops edit "},
			"GitOps readable":  {NotChecked, "GITOPS_TOKEN is missing (see secrets complete)", ""},
			"states store":     {NotChecked, "AWS_SECRET_ACCESS_KEY is missing (see secrets complete)", ""}}},
		"an identity in the cluster reads too much": {func(w *world) { w.workloadsMayRead = "/clusters/blue/**" }, map[string]told{
			"secrets identities": {Failed, "the machine identity of INFISICAL_WORKLOADS_CLIENT_ID can see", "bind its role to secretPath /clusters/blue/workloads"},
		}},
		"Infisical does not know the client": {func(w *world) { w.sops[secrets.InfisicalClientSecret] = "canary-of-another" }, map[string]told{
			"secrets Infisical": {Failed, "cannot log in: 401", "are not those of a machine identity"},
			"secrets complete":  {NotChecked, "secrets whose source could not be read", ""},
			"GitOps readable":   {NotChecked, "GITOPS_USERNAME is missing", ""},
			"GitOps writable":   {NotChecked, "cannot be read with this token", ""}}},
		"a value that the identity may not read": {func(w *world) { w.infisical = profile.Faults{profile.SecretHidden: secrets.FluxAgeKey} }, map[string]told{
			"secrets Infisical": {NotChecked, "its identity logs in, and is not given 1 secret (see secrets complete)", ""},
			"secrets complete":  {Failed, "SOPS_AGE_KEY may be seen but not read by the identity", `"Read Value" (readValue) on this secret`}}},
		"an identity of another path": {func(w *world) {
			w.infisical = profile.Faults{profile.InfisicalPaths: ""}
			w.remote = map[string]string{secrets.GitOpsToken: "there"}
		}, map[string]told{
			"secrets Infisical":  {NotChecked, "its identity logs in, and is not given 3 secrets (see secrets complete)", ""},
			"secrets complete":   {Failed, "may not be seen by the identity, whether it is there or not", `"Describe Secret" and "Read Value"`},
			"secrets identities": {Failed, "cannot read GITOPS_USERNAME in Infisical", "make it a member of the project"},
			"GitOps readable":    {NotChecked, "GITOPS_USERNAME is missing", ""},
			"GitOps writable":    {NotChecked, "cannot be read with this token", ""}}},
		"no token": {func(w *world) { delete(w.sops, secrets.ProxmoxAPIToken) }, map[string]told{
			"secrets complete":   {Failed, "PROXMOX_API_TOKEN is missing in ", "sops edit"},
			"Proxmox token":      {NotChecked, "PROXMOX_API_TOKEN is missing (see secrets complete)", ""},
			"Proxmox privileges": {NotChecked, "PROXMOX_API_TOKEN is missing", ""}, "Proxmox hosts": {NotChecked, "PROXMOX_API_TOKEN", ""},
			"Proxmox storage": {NotChecked, "PROXMOX_API_TOKEN", ""}, "Proxmox bridge": {NotChecked, "PROXMOX_API_TOKEN", ""},
			"Proxmox template": {NotChecked, "PROXMOX_API_TOKEN", ""}, "Proxmox VM ids": {NotChecked, "PROXMOX_API_TOKEN", ""},
			"network addresses": {NotChecked, "PROXMOX_API_TOKEN", ""}, "network machines": {NotChecked, "PROXMOX_API_TOKEN", ""}}},
		"a token that Proxmox does not know": {func(w *world) { w.proxmox.Tokens = []string{"other@pve!x=5f8a9c0e-0000-4000-8000-000000000000"} }, map[string]told{
			"Proxmox token":      {Failed, "does not know the token castle@pve!test", "pveum user token add castle@pve test --privsep 0"},
			"Proxmox privileges": {NotChecked, "see Proxmox token", ""}, "Proxmox hosts": {NotChecked, "see Proxmox token", ""},
			"Proxmox storage": {NotChecked, "see Proxmox token", ""}, "Proxmox bridge": {NotChecked, "see Proxmox token", ""},
			"Proxmox template": {NotChecked, "see Proxmox token", ""}, "Proxmox VM ids": {NotChecked, "see Proxmox token", ""},
			"network addresses": {NotChecked, "see Proxmox token", ""}, "network machines": {NotChecked, "see Proxmox token", ""}}},
		"another certificate": {yaml("\"16:", "\"17:"), map[string]told{
			"Proxmox certificate": {Failed, "not the one that proxmox.fingerprint names", "Node → System → Certificates"},
			"Proxmox token":       {NotChecked, "see Proxmox certificate", ""}, "Proxmox privileges": {NotChecked, "see Proxmox certificate", ""},
			"Proxmox hosts": {NotChecked, "see Proxmox certificate", ""}, "Proxmox storage": {NotChecked, "see Proxmox certificate", ""},
			"Proxmox bridge": {NotChecked, "see Proxmox certificate", ""}, "Proxmox template": {NotChecked, "see Proxmox certificate", ""},
			"Proxmox VM ids": {NotChecked, "see Proxmox certificate", ""}, "network addresses": {NotChecked, "see Proxmox certificate", ""}, "network machines": {NotChecked, "see Proxmox certificate", ""},
			"network clocks": {NotChecked, "Proxmox tells no time", ""}}},
		"any certificate": {yaml("fingerprint: \"16", "insecure: true # \"16"), map[string]told{
			"Proxmox certificate": {Warning, "proxmox.insecure", "ca or fingerprint"}}},
		"a privilege is missing": {fault(profile.PrivilegeMissing, "VM.Config.Disk"), map[string]told{
			"Proxmox privileges": {Failed, "the token lacks VM.Config.Disk on /vms/421, /vms/422", "pveum role modify Castle --privs VM.Config.Disk --append 1"}}},
		"a privilege is missing that create does without": {fault(profile.PrivilegeMissing, "Sys.Audit"), map[string]told{
			"Proxmox privileges": {Warning, "the token lacks Sys.Audit on /, /nodes/proxmox (hosts and tasks), which create does without", "--privs Sys.Audit"}}},
		"VMs and bridges are not seen": {fault(profile.PrivilegeMissing, "VM.Audit,SDN.Use"), map[string]told{
			"Proxmox privileges": {Failed, "VM.Audit", "--privs VM.Audit"}, "Proxmox storage": {NotChecked, "whether it has room is not known", ""}, "Proxmox bridge": {NotChecked, "see Proxmox privileges", ""},
			"Proxmox template": {NotChecked, "see Proxmox privileges", ""}, "Proxmox VM ids": {NotChecked, "see Proxmox privileges", ""},
			"network addresses": {NotChecked, "see Proxmox privileges", ""}, "network machines": {NotChecked, "see Proxmox privileges", ""}}},
		"a token without a role": {func(w *world) { w.proxmox.Privileges = map[string][]string{"/": {}} }, map[string]told{
			"Proxmox privileges": {Failed, "castle@pve!test has none of the privileges", "pveum acl modify / --tokens 'castle@pve!test' --roles Castle"},
			"Proxmox storage":    {Failed, "must not see it", "Datastore.Audit"}, "Proxmox bridge": {NotChecked, "see Proxmox privileges", ""},
			"Proxmox template": {NotChecked, "see Proxmox privileges", ""}, "Proxmox VM ids": {NotChecked, "see Proxmox privileges", ""},
			"network addresses": {NotChecked, "see Proxmox privileges", ""}, "network machines": {NotChecked, "see Proxmox privileges", ""}}},
		"a host that there is not": {twoHosts("templates: {proxmox: 900, pve9: 909}", func(w *world) { w.proxmox.Nodes = w.proxmox.Nodes[:1] }), map[string]told{
			"Proxmox hosts":    {Failed, "there is no Proxmox node pve9, but proxmox", "host of blue-worker-1"},
			"Proxmox template": {Failed, "there is no VM 909 to be cloned", "proxmox.templates"}}},
		"a host that is off": {twoHosts("templates: {proxmox: 900, pve9: 909}", func(w *world) {
			w.proxmox.Nodes[1].Offline = true
			w.guests = append(w.guests, proxmox.Guest{Template: true, VM: proxmox.VM{ID: 909, Name: "talos", Node: "pve9"}})
		}), map[string]told{
			"Proxmox hosts": {Failed, "the Proxmox node pve9 is offline", "switch it on"}}},
		"a template on each host": {twoHosts("templates: {proxmox: 900, pve9: 909}", func(w *world) {
			w.guests = append(w.guests, proxmox.Guest{Template: true, VM: proxmox.VM{ID: 909, Name: "talos", Node: "pve9"}})
		}), map[string]told{"Proxmox template": {OK, "900 (talos) on proxmox, 909 (talos) on pve9", ""}}},
		"a template on another host than the one that is written": {twoHosts("templates: {proxmox: 900, pve9: 909}", func(w *world) {
			w.guests = append(w.guests, proxmox.Guest{Template: true, VM: proxmox.VM{ID: 909, Name: "talos", Node: "proxmox"}})
		}), map[string]told{
			"Proxmox template": {Failed, "the template 909 is on proxmox, and blue-worker-1 would be cloned from it on another Proxmox node", "below proxmox.templates"}}},
		"one template for all hosts, on shared storage": {twoHosts("template: 900\n  templateHost: proxmox", func(w *world) { w.proxmox.Storages[0].Shared = true }),
			map[string]told{"Proxmox template": {OK, "900 (talos) on proxmox", ""}}},
		"one template for all hosts, on storage of its own": {twoHosts("template: 900\n  templateHost: proxmox", func(w *world) {}), map[string]told{
			"Proxmox template": {Failed, "blue-worker-1 shall be cloned from proxmox, and the storage local-lvm is not shared", "make a template on the host of blue-worker-1"}}},
		"one template for all hosts, whose disks alone are not shared": {twoHosts("template: 900\n  templateHost: proxmox", func(w *world) {
			w.text = append(w.text, "storage: local-lvm", "storage: ceph")
			w.proxmox.Storages = append(w.proxmox.Storages, proxmox.Storage{ID: "ceph", Type: "rbd", Content: "images", Bytes: 1 << 40, Shared: true})
		}), map[string]told{
			"Proxmox template": {Failed, "its disk local-lvm:base-900-disk-0 is not on shared storage", "proxmox.templates"}}},
		"a template for linked clones": {linkedClones(func(*world) {}), map[string]told{"Proxmox template": {OK, "900 (talos) on proxmox", ""}}},
		"a template for linked clones on another storage": {linkedClones(func(w *world) {
			w.text = append(w.text, "storage: local-lvm", "storage: ceph")
			w.proxmox.Storages = append(w.proxmox.Storages, proxmox.Storage{ID: "ceph", Type: "rbd", Content: "images", Bytes: 1 << 40, Shared: true})
		}), map[string]told{
			"Proxmox template": {Failed, "the template 900 has its disk on local-lvm (local-lvm:base-900-disk-0)", "write storage: local-lvm below proxmox"}}},
		"linked clones on a storage that has none": {linkedClones(func(w *world) { w.proxmox.Storages[0].Type = "lvm" }), map[string]told{
			"Proxmox template": {Failed, "local-lvm on proxmox is of the type lvm, which has no linked clones", "leave linkedClones out"}}},
		"a storage that there is not": {yaml("storage: local-lvm", "storage: fast"), map[string]told{
			"Proxmox privileges": {OK, "", ""}, "Proxmox storage": {Failed, "there is no storage fast on proxmox", "pvesm status"}}},
		"a storage without disks": {func(w *world) { w.proxmox.Storages[0].Content = "rootdir" }, map[string]told{
			"Proxmox storage": {Failed, "takes no disks of VMs", "pvesm set local-lvm --content"}}},
		"a storage that is full": {fault(profile.StorageFull, "local-lvm"), map[string]told{
			"Proxmox storage": {Failed, "local-lvm on proxmox has 1 GiB free, and 320 GiB of disks are to be made", "pvesm list local-lvm"}}},
		"a storage that promises more than it has": {func(w *world) { w.proxmox.Storages[0].Bytes = 200 << 30 }, map[string]told{
			"Proxmox storage": {Warning, "has 199 GiB free, and 320 GiB", "smaller disks"}}},
		"a storage that promises nothing": {func(w *world) { w.proxmox.Storages[0].Bytes, w.proxmox.Storages[0].Type = 200<<30, "lvm" }, map[string]told{
			"Proxmox storage": {Failed, "has 199 GiB free, and 320 GiB", "smaller disks"}}},
		"no bridge": {yaml("bridge: vmbr0", "bridge: vmbr7"), map[string]told{
			"Proxmox bridge": {Failed, "there is no bridge vmbr7 on proxmox", "proxmox.bridge"}}},
		"no template": {func(w *world) { w.guests = nil }, map[string]told{
			"Proxmox template": {Failed, "there is no VM 900", "create-a-cluster.md"}}},
		"a template that is none": {func(w *world) { w.guests[0].Template = false }, map[string]told{
			"Proxmox template": {Failed, "VM 900 (talos) is no template", "qm template 900"}}},
		"somebody else's VM": {func(w *world) { w.guests = append(w.guests, proxmox.Guest{VM: proxmox.VM{ID: 423, Name: "db"}}) }, map[string]told{
			"Proxmox VM ids": {Failed, `VM 423 on proxmox is "db" without the cluster's tag, not blue-cp-3`, "give the node another vmID"}}},
		"disks that a VM left behind": {func(w *world) {
			w.guests = append(w.guests, proxmox.Guest{VM: proxmox.VM{ID: 500, Name: "keeps", Disks: []proxmox.Disk{
				{Interface: "scsi0", Volume: "local-lvm:vm-423-disk-0", Bytes: gib}, {Interface: "scsi1", Volume: "local-lvm:vm-600-disk-0", Bytes: gib}}}})
		}, map[string]told{
			"Proxmox VM ids": {Warning, "local-lvm:vm-423-disk-0 on proxmox has the id of blue-cp-3 and is of no VM: it takes room", "look whose it was"}}},
		"a cloud-init drive that a VM left behind": {func(w *world) {
			w.guests = append(w.guests, proxmox.Guest{VM: proxmox.VM{ID: 500, Name: "keeps", Disks: []proxmox.Disk{{Interface: "scsi0", Volume: "local-lvm:vm-423-cloudinit", Bytes: gib}}}})
		}, map[string]told{
			"Proxmox VM ids": {Failed, "local-lvm:vm-423-cloudinit on proxmox has the id of blue-cp-3 and is of no VM: another one cannot be made", `type "pvesm free local-lvm:vm-423-cloudinit" on proxmox`}}},
		"a stranger's address": {func(w *world) {
			w.strangers = map[netip.Addr]answer{netip.MustParseAddr("192.168.1.214"): {22, true}}
		}, map[string]told{
			"network addresses": {Failed, "somebody answers at 192.168.1.214, the address of node blue-worker-1 (port 22 accepts connections)", "ip neigh show 192.168.1.214"}}},
		"a stranger in the pool who refuses": {func(w *world) {
			w.strangers = map[netip.Addr]answer{netip.MustParseAddr("192.168.1.230"): {443, false}}
		}, map[string]told{
			"network addresses": {Failed, "somebody answers at 192.168.1.230, the address of the load balancer (port 443 refuses connections)", "another address"}}},
		"its own machines are no strangers": {func(w *world) {
			w.guests = append(w.guests, ours(421, "blue-cp-1"), ours(424, "blue-worker-1"))
			w.strangers = map[netip.Addr]answer{}
			for _, own := range []string{"192.168.1.210", "192.168.1.211", "192.168.1.214", "192.168.1.220"} {
				w.strangers[netip.MustParseAddr(own)] = answer{443, true}
			}
		}, nil},
		"a machine at another address": {func(w *world) {
			w.guests = append(w.guests, ours(421, "blue-cp-1"), ours(424, "blue-worker-1"))
			w.drifted = "blue-worker-1"
		}, map[string]told{
			"network machines": {Warning, "VM 424 of blue-worker-1 runs, and nobody answers at its declared address 192.168.1.214", "its static one"}}},
		"machines at their addresses": {func(w *world) {
			w.guests = append(w.guests, ours(421, "blue-cp-1"), ours(424, "blue-worker-1"))
		}, map[string]told{"network machines": {OK, "2 machines at the declared addresses", ""}}},
		"a worker alone does not hold the API's address": {func(w *world) {
			w.guests = append(w.guests, ours(424, "blue-worker-1"))
			w.strangers = map[netip.Addr]answer{netip.MustParseAddr("192.168.1.210"): {6443, true}}
		}, map[string]told{"network addresses": {Failed, "the address of the Kubernetes API", "another address"}}},
		"a clock that is a little wrong": {fault(profile.ClockSkew, "-2m"), map[string]told{
			"network clocks": {Warning, "behind this machine's clock", "NTP"}}},
		"a clock that is wrong": {fault(profile.ClockSkew, "10m"), map[string]told{
			"network clocks": {Failed, "ahead of this machine's clock", "NTP"}}},
		"a name that nobody knows": {func(w *world) {
			w.text, w.limit = []string{"https://eu.infisical.com", "https://infisical.invalid"}, lookTime // Infisical is asked again until then
		}, map[string]told{
			"network names":     {Failed, "infisical.invalid cannot be resolved", "getent hosts"},
			"secrets Infisical": {Failed, "infisical.invalid", "can be reached from here"}, "secrets complete": {NotChecked, "could not be read", ""},
			"GitOps readable": {NotChecked, "GITOPS_USERNAME is missing", ""}, "GitOps writable": {NotChecked, "", ""}, "network clocks": {NotChecked, "Infisical tells no time", ""}}},
		"a token that the Git server does not know": {func(w *world) { w.remote[secrets.GitOpsToken] = "canary-of-nobody" }, map[string]told{
			"GitOps readable": {Failed, "branch main: the credentials were not accepted", "valid and not expired"}}},
		"no such branch": {func(w *world) { w.branch = "trunk" }, map[string]told{
			"GitOps readable": {Failed, "no such branch", "gitops.branch"}, "GitOps writable": {NotChecked, "no such branch", ""}}},
		"no such folder": {yaml("path: clusters/blue", "path: clusters/bleu"), map[string]told{
			"GitOps readable": {Failed, "has no folder clusters/bleu", "gitops.path"}}},
		"publishing's token reads only": {func(w *world) { w.pushToken = readToken }, map[string]told{
			"GitOps writable": {Failed, "--git-token may not push", "contents, read and write"}}},
		"publishing's token is not given": {func(w *world) { w.pushToken = "" }, map[string]told{
			"GitOps writable": {NotChecked, "GITOPS_TOKEN reads only", ""}}},
		"the cluster's token writes, too": {func(w *world) { w.pushToken, w.remote[secrets.GitOpsToken] = "", pushToken }, nil},
		"no such bucket": {yaml("bucket: tazlab-states", "bucket: tazlab-state"), map[string]told{
			"states store": {Failed, "there is no bucket tazlab-state", "state.s3"}}},
		"a lock": {func(w *world) {
			w.lock = `{"ID": "ABC", "Operation": "create", "Who": "process 7 on laptop", "Created": "2026-01-02T03:04:05Z", "Folder": "x"}`
		}, map[string]told{
			"states store": {Warning, "the cluster is locked by create of process 7 on laptop", "state-unlock --cluster blue --confirm ABC"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for check, rows := range newWorld(t, story.spoil).rows() {
				want, told := story.want[check]
				for i, row := range rows {
					switch {
					case told && i == 0 && (want.verdict != OK || row.Verdict == OK):
						if row.Verdict != want.verdict || !strings.Contains(row.Seen, want.seen) || !strings.Contains(row.Fix, want.fix) {
							t.Errorf("%s: %+v, want %+v", check, row, want)
						}
					case !told && check == "secrets identities" && row.Verdict == NotChecked && strings.Contains(row.Seen, "(see secrets "):
						// the row that it names says why
					case !told && row.Verdict != OK:
						t.Errorf("%s: %+v", check, row)
					}
				}
			}
		})
	}
}

func TestAllThatBlocksIsToldAtOnceAndTheRestIsNot(t *testing.T) {
	w := newWorld(t, func(w *world) {
		w.proxmox.Profile.Faults = profile.Faults{profile.PrivilegeMissing: "VM.Clone,VM.PowerMgmt", profile.StorageFull: "local-lvm", profile.ClockSkew: "1m"}
		w.guests = nil
		w.files = nil
		delete(w.remote, secrets.FluxAgeKey) // which create itself tells of
	})
	values := func() *secrets.Values {
		return secrets.Open(t.Context(), w.cluster.Description, secrets.Inputs{Folder: w.cluster.Folder, AgeKey: w.cluster.AgeKey}).Values
	}
	var refused *Refused
	err := w.blocking(values)
	if !errors.As(err, &refused) {
		t.Fatalf("got %v", err)
	}
	var names []string
	for _, row := range refused.Rows {
		names = append(names, row.Group+" "+row.Name)
	}
	want := "[Proxmox privileges Proxmox privileges Proxmox storage Proxmox template GitOps readable]"
	if got := fmt.Sprint(names); got != want || strings.Count(err.Error(), "\n") != len(refused.Rows) || !strings.HasPrefix(err.Error(), "nothing was changed") {
		t.Errorf("got %s, want %s:\n%v", got, want, err)
	}
}

// A clone that another run makes has no name and no tag yet: it is that run that is told of.
func TestAnotherRunsCloneIsNobodyElses(t *testing.T) {
	w := newWorld(t, func(w *world) {
		w.guests = append(w.guests, proxmox.Guest{VM: proxmox.VM{ID: 423, Name: "clone"}})
		w.lock = `{"ID": "ABC", "Operation": "create", "Who": "process 7 on laptop", "Created": "2026-01-02T03:04:05Z", "Folder": "x"}`
	})
	err := w.blocking(func() *secrets.Values { return nil })
	if err == nil || !strings.Contains(err.Error(), "states store: the cluster is locked by create of process 7 on laptop") || strings.Contains(err.Error(), "VM 423 on") {
		t.Errorf("got %v", err)
	}
}

func TestAClusterThatIsWellIsNotKeptFromBeginning(t *testing.T) {
	// Where the secrets cannot be had, create says so.
	if err := newWorld(t, nil).blocking(func() *secrets.Values { return nil }); err != nil {
		t.Error(err)
	}
}

// Proxmox answers, and then does not: nothing is known of whose VMs are there, or of who holds the addresses.
func TestCreateDoesNotBeginWhereAGuardCouldNotBeMade(t *testing.T) {
	away := errors.New("502 Bad Gateway")
	values := secrets.NewValues
	for name, story := range map[string]struct {
		change func(*inspection)
		guards []string
	}{
		"the list of VMs":     {func(s *inspection) { s.vms = func() (machines, error) { return machines{}, away } }, []string{"Proxmox VM ids", "network addresses"}},
		"what the token sees": {func(s *inspection) { s.lacks = func() (lacking, error) { return lacking{}, away } }, []string{"Proxmox VM ids", "network addresses"}},
		"time for the addresses": {func(s *inspection) {
			s.limit = 2 * time.Second
			s.probe = func(ctx context.Context, _ netip.Addr, _ int) (accepted, there bool) {
				<-ctx.Done()
				return false, false
			}
		}, []string{"network addresses"}},
	} {
		w := newWorld(t, nil)
		var refused *Refused
		if err := w.blocking(values, story.change); !errors.As(err, &refused) || !strings.Contains(err.Error(), "it could not be looked at") {
			t.Errorf("without %s create begins, or says %v", name, err)
			continue
		}
		var names []string
		for _, row := range refused.Rows {
			names = append(names, row.Group+" "+row.Name)
		}
		if !slices.Equal(names, story.guards) {
			t.Errorf("without %s it is refused for %q, want %q", name, names, story.guards)
		}
		for _, guard := range story.guards {
			if !slices.Contains(w.shown, guard) {
				t.Errorf("without %s only %q is shown", name, w.shown)
			}
		}
	}
}

// What no guard is about keeps create from nothing, and is shown.
func TestABlockingCheckThatCouldNotBeMadeIsShown(t *testing.T) {
	w := newWorld(t, nil)
	err := w.blocking(func() *secrets.Values { return nil })
	if err != nil || !slices.Equal(w.shown, []string{"GitOps readable"}) {
		t.Errorf("%v, and shown is %q", err, w.shown)
	}
}

func TestAFolderThatIsYetToBeMadeHasTheRoomOfItsDisk(t *testing.T) {
	if bytes, err := free(filepath.Join(t.TempDir(), "not", "yet")); err != nil || bytes == 0 {
		t.Errorf("%d, %v", bytes, err)
	}
}

// A check that hangs keeps nobody, and the others say what they have seen.
func TestWhatHangsIsNotChecked(t *testing.T) {
	w := newWorld(t, nil)
	s := newInspection(t.Context(), w.cluster, 100*time.Millisecond)
	rows := s.run(t.Context(), []check{
		{group: "a", name: "hangs", look: func(context.Context, *inspection) []finding { time.Sleep(10 * time.Second); return nil }},
		{group: "b", name: "is well", look: func(context.Context, *inspection) []finding { return ok("seen") }},
	})
	if len(rows) != 2 || rows[0].Verdict != NotChecked || rows[1].Verdict != OK {
		t.Errorf("got %+v", rows)
	}
}
