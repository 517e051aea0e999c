package config

import (
	"strings"
	"testing"
)

func TestWhatRisksTheTokenIsWarnedOf(t *testing.T) {
	text := blueText(t)
	start := strings.Index(text, "  fingerprint: ")
	end := start + strings.Index(text[start:], "\n") + 1
	for line, warnings := range map[string]int{text[start:end]: 0, "  insecure: true\n": 1, "  insecure: false\n": 0, "": 0} {
		c, err := parse("cluster.yaml", "", []byte(text[:start]+line+text[end:]))
		if err != nil {
			t.Fatal(err)
		}
		got := c.Warnings()
		if len(got) != warnings || warnings == 1 && (!strings.Contains(got[0], "API token") || !strings.Contains(got[0], "/etc/pve/pve-root-ca.pem")) {
			t.Errorf("%q: %q", line, got)
		}
	}
}

func TestFluxIsLockedDownUnlessSomebodySaysOtherwise(t *testing.T) {
	for line, want := range map[string]string{"": TenancyMulti, "\n  tenancy: multi": TenancyMulti, "\n  tenancy: single": TenancySingle} {
		c, err := parse("cluster.yaml", "", []byte(strings.Replace(blueText(t), "  path: clusters/blue", "  path: clusters/blue"+line, 1)))
		if err != nil {
			t.Fatal(err)
		}
		warnings := c.Warnings()
		if c.GitOps.Tenancy != want || (want == TenancySingle) != (len(warnings) == 1 && strings.Contains(warnings[0], "cluster-admin")) {
			t.Errorf("%q: %s, %q", line, c.GitOps.Tenancy, warnings)
		}
	}
	_, err := parse("cluster.yaml", "", []byte(strings.Replace(blueText(t), "  path: clusters/blue", "  path: clusters/blue\n  tenancy: none", 1)))
	if err == nil || !strings.Contains(err.Error(), "gitops.tenancy") {
		t.Errorf("an unknown tenancy: %v", err)
	}
}

func TestVersionsOfTalosWithAKnownFlawAreWarnedOf(t *testing.T) {
	for version, want := range map[string]string{
		"v1.12.4": "", "v1.13.0": "/var/lib/kubelet", "v1.13.2": "/var/lib/kubelet", "v1.13.3": "", "v1.13.7": "", "v1.13.8": "deadlock", TalosVersion: "", "v1.13.10": "",
	} {
		got := (&Cluster{Talos: Talos{Version: version}}).Warnings()
		if (want == "") != (got == nil) || got != nil && (!strings.Contains(got[0], want) || !strings.Contains(got[0], "write "+TalosVersion)) {
			t.Errorf("%s: %q, want %q", version, got, want)
		}
	}
}

func TestAMirrorWithoutTLSIsWarnedOf(t *testing.T) {
	mirrors := map[string][]string{"docker.io": {"https://a.example", "http://b.example:5000"}, "*": {"https://c.example"}}
	c := &Cluster{Platform: PlatformProxmox, Talos: Talos{Version: TalosVersion, RegistryMirrors: mirrors}}
	got := c.Warnings()
	if len(got) != 1 || !strings.Contains(got[0], "talos.registryMirrors[docker.io]") || !strings.Contains(got[0], "http://b.example:5000") {
		t.Errorf("got %q", got)
	}
	c.Platform = PlatformSandbox // nobody is in its network but who belongs there
	if got := c.Warnings(); len(got) != 0 {
		t.Errorf("of a sandbox, got %q", got)
	}
}
