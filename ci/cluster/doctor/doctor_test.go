package doctor

import (
	"path/filepath"
	"testing"

	"tazlab.net/castle/ci/base/golden"
	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/cluster/preflight"
)

func TestAReportIsReadByPeopleAndPrograms(t *testing.T) {
	report := &Report{Cluster: "blue", Rows: []preflight.Row{
		{Group: "tools", Name: "programs", Verdict: preflight.OK, Seen: "OpenTofu 1.12.6, Terragrunt v1.1.0"},
		{Group: "Proxmox", Name: "certificate", Verdict: preflight.Warning, Seen: "not looked at", Fix: "write ca or fingerprint"},
		{Group: "Proxmox", Name: "privileges", Verdict: preflight.Failed, Seen: "the token lacks VM.Clone on /vms/900 (the template)", Fix: "on a Proxmox node: pveum role modify Castle --privs VM.Clone --append 1"},
		{Group: "Proxmox", Name: "privileges", Verdict: preflight.Failed, Seen: "the token lacks SDN.Use on /sdn/zones/localnetwork/vmbr0 (the VMs' bridge)", Fix: "on a Proxmox node: pveum role modify Castle --privs SDN.Use --append 1"},
		{Group: "Proxmox", Name: "bridge", Verdict: preflight.NotChecked, Seen: "the token does not see it (see Proxmox privileges)"},
	}}
	report.Failed = report.count(preflight.Failed)
	for name, file := range map[string]string{"text": "report.txt", "markdown": "report.md", "json": "report.json"} {
		text, err := rendering.As(name, report)
		if err != nil {
			t.Fatal(err)
		}
		golden.Match(t, filepath.Join("testdata", file), text)
	}
}
