//go:build linux

package scenarios

import (
	"crypto/sha256"
	"encoding/pem"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tazlab.net/castle/ci/sandbox/proxmox"
	"tazlab.net/castle/ci/test/tell"
)

const byAuthority = "  ca: pve-root-ca.pem\n"

// fingerprint is what Proxmox's web UI would show of the certificate that the world's has.
func (w *world) fingerprint() string {
	w.t.Helper()
	return strings.ReplaceAll(fmt.Sprintf("% X", sha256.Sum256(w.certificate(proxmox.CertificateFile).Bytes)), " ", ":")
}

// certificate is the first of a file in the world's folder.
func (w *world) certificate(name string) *pem.Block {
	w.t.Helper()
	data, err := os.ReadFile(filepath.Join(w.dir(), name))
	if err != nil {
		w.t.Fatal(err)
	}
	block, _ := pem.Decode(data)
	return block
}

// TestProxmoxIsTrustedByFingerprint, and by its authority in every other scenario. What is refused is refused before anything is
// changed, with what to write.
func TestProxmoxIsTrustedByFingerprint(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "none", "0", justPlatform()...)
	w.on()
	try := func(name, line string) string {
		return w.copyLive(name, append(justPlatform(), change{file: "live/sandbox/cluster.yaml", from: byAuthority, to: line})...)
	}
	run := func(live string, args ...string) *called {
		c := w.start(live, nil, args...)
		c.wait(5 * time.Minute)
		return c
	}
	unchanged := func() {
		t.Helper()
		if vms := w.vms(); len(vms) != 1 {
			t.Errorf("Proxmox has %+v", vms)
		}
		if w.infisical()["TALOS_SECRETS"] != "" {
			t.Error("the machine secrets were made")
		}
	}

	tell.Fault(t, "Proxmox shows another certificate than the one that is known")
	first := w.fingerprint()
	wrong := "AB" + first[2:]
	for _, args := range [][]string{{"create"}, {"plan"}, {"destroy", "--confirm=sandbox"}} {
		run(try("wrong-"+args[0], "  fingerprint: \""+wrong+"\"\n"), args...).failsWith("expected "+wrong, "got "+first, "Node → System → Certificates")
	}
	unchanged()
	run(try("none", ""), "create").failsWith("no authority that this machine knows", first, "ca: pve-root-ca.pem")
	unchanged()
	strange := try("strange", byAuthority)
	if err := os.WriteFile(filepath.Join(strange, proxmox.AuthorityFile), pem.EncodeToMemory(w.certificate("ca.pem")), 0o600); err != nil { // the Git server's
		t.Fatal(err)
	}
	run(strange, "create").failsWith("not signed by the authority in pve-root-ca.pem", "/etc/pve/pve-root-ca.pem")
	unchanged()

	pinned := try("pinned", "  fingerprint: \""+first+"\"\n")
	run(pinned, "create").succeeds()
	w.hasExactlyItsVMs()

	// Proxmox renews it every two years.
	w.off(syscall.SIGTERM)
	if err := os.Remove(filepath.Join(w.dir(), proxmox.CertificateFile)); err != nil {
		t.Fatal(err)
	}
	w.on()
	second := w.fingerprint()
	run(pinned, "destroy", "--confirm=sandbox").failsWith("expected "+first, "got "+second, "if it was renewed")
	w.hasExactlyItsVMs()
	// The authority is the same one.
	w.castle("create").succeeds()

	insecure := run(try("insecure", "  insecure: true\n"), "create").succeeds()
	if said := insecure.stdout.String(); !strings.Contains(insecure.stderr.String(), "warning: proxmox.insecure") || !strings.Contains(said, "warning: proxmox.insecure") {
		t.Errorf("create does not warn:\n%s", said)
	}
}
