package hypervisor

import (
	"slices"
	"strings"
)

// Passes tells of an error that the same request may not meet again: another task of the VM's, or of its storage's, holds Proxmox's lock on it
// (qemu-server, PVE::AbstractConfig::lock_config; PVE::Storage, cluster_lock_storage), or its proxy has no worker free (pve-http-server, 595 and 596).
func Passes(err error) bool {
	text := err.Error()
	return slices.ContainsFunc([]string{"can't lock file", "got lock timeout", "got lock request timeout", "HTTP 595", "HTTP 596"}, func(mood string) bool {
		return strings.Contains(text, mood)
	})
}
