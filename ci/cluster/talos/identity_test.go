package talos_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strconv"
	"strings"
	"testing"
	"time"

	sidero "github.com/siderolabs/crypto/x509"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/talos"
)

// uuidOf is what the hypervisor of these tests gives a VM.
func uuidOf(id int) string { return fmt.Sprintf("0a1b2c3d-4e5f-4677-8899-%012d", id) }

// powerOnAs starts all machines, each with the UUID that its firmware tells.
func (w *world) powerOnAs(uuid func(id int) string) {
	w.t.Helper()
	for _, node := range w.cluster.Nodes {
		vm := w.vm(node)
		vm.UUID = uuid(node.VMID)
		if err := w.fleet.PowerOn(vm); err != nil {
			w.t.Fatal(err)
		}
	}
}

// known brings the machines up, each known by the hypervisor's UUID.
func (w *world) known() (talos.Report, error) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), 2*time.Minute)
	defer cancel()
	options := w.options()
	options.UUID = func(_ context.Context, name string) (string, error) {
		node, _ := w.cluster.Node(name)
		return uuidOf(node.VMID), nil
	}
	return talos.Up(ctx, w.cluster, w.bundle, options)
}

// A machine that answers at the address of another one does not get the keys of the cluster.
func TestAMachineThatImpersonatesAnotherIsGivenNothing(t *testing.T) {
	w := newWorld(t, homelab(t, 0))
	const stranger = "deadbeef-0000-4000-8000-000000000001"
	victim := w.cluster.Nodes[1]
	w.powerOnAs(func(id int) string {
		if id == victim.VMID {
			return stranger
		}
		return strings.ToUpper(uuidOf(id))
	})
	_, err := w.known()
	refused := as[*talos.StrangerError](t, err)
	if refused.Node != victim.Name || refused.Told != stranger || refused.Wanted != uuidOf(victim.VMID) {
		t.Errorf("got %+v", refused)
	}
	if stage := w.fleet.Stage(victim.VMID); stage != "maintenance" {
		t.Errorf("%s is %s", victim.Name, stage)
	}

	// The right machine at the address ends it.
	if err := w.fleet.Removed(victim.VMID); err != nil {
		t.Fatal(err)
	}
	w.powerOnAs(uuidOf)
	if _, err := w.known(); err != nil {
		t.Error(err)
	}
}

// Some firmware writes the first groups of a UUID the other way round.
func TestAMachineIsKnownByEitherOrderOfItsUUID(t *testing.T) {
	w := newWorld(t, homelab(t, 0))
	w.powerOnAs(func(id int) string { return "3d2c1b0a-5f4e-7746" + uuidOf(id)[len("0a1b2c3d-4e5f-4677"):] })
	if _, err := w.known(); err != nil {
		t.Error(err)
	}
}

func TestAMachineThatDoesNotTellItsUUIDIsGivenNothing(t *testing.T) {
	for platform, wanted := range map[string]bool{config.PlatformProxmox: false, config.PlatformSandbox: true} { // where it may be a container
		w := newWorld(t, homelab(t, 0))
		w.cluster.Platform = platform
		w.powerOnAs(func(int) string { return "" })
		report, err := w.known()
		if (err == nil) != wanted || report.Changed() != wanted {
			t.Errorf("%s: %v, %+v", platform, err, report)
		}
		if err != nil && !strings.Contains(err.Error(), "does not tell its UUID") {
			t.Errorf("%s: %v", platform, err)
		}
	}
}

// shown is the fingerprint of the certificate that a machine in maintenance mode shows, as its console prints it.
func (w *world) shown(node config.Node) string {
	w.t.Helper()
	fingerprint := ""
	w.eventually(node.Name+" shows a certificate", func() bool {
		dialer := &tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
		connection, err := dialer.DialContext(w.t.Context(), "tcp", net.JoinHostPort(node.Address.String(), strconv.Itoa(int(w.port))))
		if err != nil {
			return false
		}
		defer connection.Close()
		fingerprint = sidero.SPKIFingerprint(connection.(*tls.Conn).ConnectionState().PeerCertificates[0]).String()
		return true
	})
	return fingerprint
}

func TestAMachineWithAnotherCertificateThanTheDescriptionNamesIsGivenNothing(t *testing.T) {
	w := newWorld(t, homelab(t, 0))
	w.powerOn()
	for i, node := range w.cluster.Nodes {
		w.cluster.Nodes[i].Fingerprint = w.shown(node)
	}
	right := w.cluster.Nodes[0].Fingerprint
	w.cluster.Nodes[0].Fingerprint = w.cluster.Nodes[1].Fingerprint
	_, _, err := w.create()
	refused := as[*talos.FingerprintError](t, err)
	if refused.Node != w.cluster.Nodes[0].Name || refused.Shown != right || refused.Wanted != w.cluster.Nodes[1].Fingerprint {
		t.Errorf("got %+v", refused)
	}
	if stage := w.fleet.Stage(w.cluster.Nodes[0].VMID); stage != "maintenance" {
		t.Errorf("it is %s", stage)
	}
	w.cluster.Nodes[0].Fingerprint = right
	w.mustCreate()
	w.mustCreate() // once it is configured, a machine is known by the cluster's own authority
}
