package hypervisor

import (
	"errors"
	"testing"
)

func TestOnlyMoodsOfProxmoxPass(t *testing.T) {
	for text, want := range map[string]bool{
		"error stopping VM: received an HTTP 500 response - Reason: can't lock file '/var/lock/qemu-server/lock-521.conf' - got timeout ()": true,
		"error waiting for VM destroy: cfs-lock 'storage-local-lvm' error: got lock request timeout":                                        true,
		"received an HTTP 596 response - Reason: Connection timed out":                                                                      true,
		"received an HTTP 403 response - Reason: Permission check failed (/vms/521, VM.Allocate)":                                           false,
		"received an HTTP 500 response - Reason: storage 'local-lvm' does not exist":                                                        false,
	} {
		if got := Passes(errors.New(text)); got != want {
			t.Errorf("%t: %s", got, text)
		}
	}
}
