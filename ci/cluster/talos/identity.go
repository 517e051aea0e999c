package talos

import (
	"context"
	stdtls "crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/cosi-project/runtime/pkg/state"
	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/resources/hardware"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"tazlab.net/castle/ci/cluster/config"
)

// A machine in maintenance mode has signed its certificate itself, and a configuration holds the keys of the
// cluster's authorities. So before it is applied the machine has to be the one that is meant: by its UUID, which the
// hypervisor gave its virtual machine, or by the fingerprint of its certificate, which stands on its console. From
// then on only that certificate is spoken with.

// pin is the certificate that a machine in maintenance mode shows, and the one that it has to show.
type pin struct {
	mu      sync.Mutex
	shown   string // the fingerprint of the last one, as Talos writes it on the console
	wanted  string // empty: any
	learned bool   // wanted was shown by a machine whose UUID was right, and does not come from the description
}

// verify is tls.Config.VerifyConnection.
func (c *pin) verify(connection stdtls.ConnectionState) error {
	if len(connection.PeerCertificates) == 0 {
		return errors.New("it shows no certificate")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	// As MaintenanceServiceController prints it (internal/app/machined/pkg/controllers/runtime/maintenance_service.go of
	// Talos 1.13).
	c.shown = x509.SPKIFingerprint(connection.PeerCertificates[0]).String()
	if c.wanted != "" && c.shown != c.wanted {
		return fmt.Errorf("its certificate has the fingerprint %s, and %s is wanted", c.shown, c.wanted)
	}
	return nil
}

// want has only one certificate be spoken with from now on.
func (c *pin) want(fingerprint string, learned bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wanted, c.learned = fingerprint, learned
}

// other tells that the last one is not the one that is wanted.
func (c *pin) other() (shown, wanted string, learned, other bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shown, c.wanted, c.learned, c.wanted != "" && c.shown != c.wanted
}

// identify makes sure that a machine in maintenance mode is the one that is meant, before anything is applied to it.
func (r *run) identify(ctx context.Context, n *node) error {
	if r.options.UUID == nil {
		return nil
	}
	wanted, err := r.options.UUID(ctx, n.Name)
	if err != nil {
		return fmt.Errorf("what %s is known by: %w", n.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	before, _, _, _ := n.pin.other()
	told, err := n.uuid(ctx)
	after, _, _, _ := n.pin.other()
	switch {
	case err != nil:
		return err
	case told == "" && r.cluster.Platform == config.PlatformSandbox:
		return nil // a container, which has no SMBIOS
	case told == "":
		return status.Error(codes.Unavailable, "it does not tell its UUID, by which the right machine is known")
	case !sameUUID(told, wanted):
		return &StrangerError{Node: n.Name, Address: n.Address, Told: told, Wanted: wanted}
	case before != after:
		return status.Error(codes.Unavailable, "its certificate has changed")
	}
	n.pin.want(after, true)
	return nil
}

// uuid is what a machine in maintenance mode says of itself; empty where it says nothing. Talos reads it from SMBIOS
// in machines, and not in containers (SystemInfoController, internal/app/machined/pkg/controllers/hardware/system.go
// of Talos 1.13).
func (n *node) uuid(ctx context.Context) (string, error) {
	information, err := safe.StateGetByID[*hardware.SystemInformation](ctx, n.insecure.COSI, hardware.SystemInformationID)
	switch {
	case err == nil:
		return information.TypedSpec().UUID, nil
	case untold(err), state.IsNotFoundError(err):
		return "", nil
	}
	return "", fmt.Errorf("%s does not tell its UUID: %w", n.Name, err)
}

// sameUUID compares UUIDs. SMBIOS writes the first three groups with their bytes reversed (7.2.1 of its
// specification), and not all firmware does.
func sameUUID(a, b string) bool {
	return strings.EqualFold(a, b) || strings.EqualFold(reversed(a), b)
}

func reversed(uuid string) string {
	groups := strings.Split(uuid, "-")
	for i := range min(3, len(groups)) {
		var turned strings.Builder
		for end := len(groups[i]); end >= 2; end -= 2 {
			turned.WriteString(groups[i][end-2 : end])
		}
		groups[i] = turned.String()
	}
	return strings.Join(groups, "-")
}

// StrangerError is a machine at the address of a node that is another one than the hypervisor made for it. Nothing
// was given to it.
type StrangerError struct {
	Node         string
	Address      netip.Addr
	Told, Wanted string // UUIDs
}

func (e *StrangerError) Error() string {
	return fmt.Sprintf("another machine than the one of %s answers at %s: its UUID is %s, and the VM's is %s "+
		"(smbios1 of its configuration in Proxmox); nothing was given to it. "+
		"Find out whose it is (ip neigh show %s), give one of the two another address, and create again",
		e.Node, e.Address, e.Told, e.Wanted, e.Address)
}

// FingerprintError is a machine in maintenance mode whose certificate is not the one that the description names.
// Nothing was given to it.
type FingerprintError struct {
	Node          string
	Address       netip.Addr
	Shown, Wanted string
}

func (e *FingerprintError) Error() string {
	return fmt.Sprintf("the machine of %s at %s shows a certificate with the fingerprint %s, and cluster.yaml names %s; "+
		"nothing was given to it. A machine has another one after each start: write the one that its console shows now as "+
		"fingerprint, or find out who answers at the address",
		e.Node, e.Address, e.Shown, e.Wanted)
}
