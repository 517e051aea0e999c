package hypervisor

import (
	"testing"

	"tazlab.net/castle/ci/sandbox/profile"
	"tazlab.net/castle/ci/sandbox/proxmox"
)

func TestAVMIsKnownByTheUUIDThatProxmoxGaveIt(t *testing.T) {
	const uuid = "0a1b2c3d-4e5f-4677-8899-aabbccddeeff"
	known := guest(421, "blue-cp-1", "castle-blue", "castle")
	known.UUID = uuid
	h := hostWith(t, proxmox.Options{}, known)
	if got, err := h.UUID(t.Context(), "blue-cp-1"); err != nil || got != uuid {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := h.UUID(t.Context(), "blue-cp-2"); err == nil {
		t.Error("a VM that is not there has one")
	}
}

func TestAMachineIsSwitchedOffAndOnWhateverProxmoxsMoodIs(t *testing.T) {
	moody := profile.Profile{Faults: profile.Faults{profile.ProxmoxMoods: "2"}}
	h := hostWith(t, proxmox.Options{Profile: moody}, guest(421, "blue-cp-1", "castle-blue", "castle"))
	process := func() uint64 {
		t.Helper()
		process, err := h.Process(t.Context(), "blue-cp-1")
		if err != nil {
			t.Fatal(err)
		}
		return process
	}
	first := process()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(h.PowerOff(t.Context(), "blue-cp-1"))
	if off := process(); off != 0 {
		t.Errorf("it is still process %d", off)
	}
	must(h.PowerOff(t.Context(), "blue-cp-1"))
	must(h.PowerOn(t.Context(), "blue-cp-1"))
	second := process()
	must(h.PowerOn(t.Context(), "blue-cp-1"))
	if third := process(); first == 0 || second == 0 || second == first || third != second {
		t.Errorf("it was process %d, then %d, then %d", first, second, third)
	}
}
