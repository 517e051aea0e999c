//go:build linux

package world

import (
	"fmt"
	"net/netip"

	"tazlab.net/castle/ci/sandbox/profile"
)

// strangersPort is where the machine of somebody else answers: ssh.
const strangersPort = 22

// serveStranger lets somebody else's machine answer at an address of the cluster's.
func (w *world) serveStranger() error {
	value := w.Profile.Faults[profile.AddressTaken]
	if value == "" {
		return nil
	}
	address, err := netip.ParseAddr(value)
	if err != nil {
		return fmt.Errorf("fault %s: %w", profile.AddressTaken, err)
	}
	listener, err := w.network.listen(netip.AddrPortFrom(address, strangersPort))
	if err != nil {
		return err
	}
	w.onClose(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return // the world ends
			}
			_ = connection.Close()
		}
	}()
	return nil
}
