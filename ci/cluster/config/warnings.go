package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/mod/semver"
)

// TalosVersion is the version of Talos that castle is tried with: what a new cluster gets, and what messages propose.
const TalosVersion = "v1.13.9"

// flaws are versions of Talos that validate warns of: from the first up to but not including the second. That mounts are shared again
// stands in the CHANGELOG.md of Talos 1.13.3.
var flaws = []struct{ from, before, flaw string }{
	{"v1.13.0", "v1.13.3", "mounts /var/lib/kubelet without the propagation that volumes need"},
	{"v1.13.8", "v1.13.9", "can deadlock while its services restart"},
}

// Warnings are what a description may say and should not, each with its fix.
func (c *Cluster) Warnings() []string {
	var warnings []string
	if c.Proxmox.Insecure {
		warnings = append(warnings, "proxmox.insecure accepts the certificate of whoever answers in Proxmox's place, who then gets the API token and with it every machine; "+
			"write ca: pve-root-ca.pem instead and copy /etc/pve/pve-root-ca.pem of a Proxmox node beside cluster.yaml, or write the certificate's fingerprint")
	}
	if c.GitOps.Tenancy == TenancySingle {
		warnings = append(warnings, "gitops.tenancy single makes Flux's controllers cluster-admin, and with them whoever may create a Kustomization or a HelmRelease in any namespace; "+
			"write multi, or remove it, when the repository fits it (check-gitops --lockdown)")
	}
	for _, known := range flaws {
		if v := c.Talos.Version; semver.Compare(v, known.from) >= 0 && semver.Compare(v, known.before) < 0 {
			fix := ", and make the template anew from that version's image"
			if !c.MakesMachines() {
				fix = ""
			}
			warnings = append(warnings, fmt.Sprintf("talos.version %s %s; write %s%s", v, known.flaw, TalosVersion, fix))
		}
	}
	for _, registry := range slices.Sorted(maps.Keys(c.Talos.RegistryMirrors)) {
		for _, address := range c.Talos.RegistryMirrors[registry] {
			if c.Platform != PlatformSandbox && strings.HasPrefix(address, "http://") { // whose network is in one container
				warnings = append(warnings, fmt.Sprintf("talos.registryMirrors[%s] asks %s without TLS, and whoever answers in its place chooses what the machines run; "+
					"give the mirror a certificate, and Talos its authority by a patch of kind RegistryTLSConfig where it is not a public one", registry, address))
			}
		}
	}
	return warnings
}
