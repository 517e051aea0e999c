package proxmox

import (
	"net/netip"
	"os"
	"path/filepath"
	"testing"
)

func TestAHostKeepsItsCertificateAndMakesAnotherWhereItIsOfNoUse(t *testing.T) {
	var authority [2][]byte
	for i, name := range []string{AuthorityFile, AuthorityKeyFile} {
		data, err := os.ReadFile(filepath.Join("../../../terragrunt/live/sandbox", name))
		if err != nil {
			t.Fatal(err)
		}
		authority[i] = data
	}
	file := filepath.Join(t.TempDir(), CertificateFile)
	node := Node{Name: "pve", Address: netip.MustParseAddr("192.168.77.10")}
	made := func() string {
		t.Helper()
		certificate, err := Certificate(file, authority[0], authority[1], node)
		if err != nil {
			t.Fatal(err)
		}
		if len(certificate.Certificate) != 1 || certificate.Leaf.VerifyHostname(node.Address.String()) != nil || certificate.Leaf.VerifyHostname("pve") != nil {
			t.Errorf("%d certificates, for %v and %v", len(certificate.Certificate), certificate.Leaf.DNSNames, certificate.Leaf.IPAddresses)
		}
		return string(certificate.Leaf.Raw)
	}
	first := made()
	if made() != first {
		t.Error("it is made anew each time")
	}
	if err := os.WriteFile(file, []byte("half of it"), 0o600); err != nil {
		t.Fatal(err)
	}
	second := made()
	node.Address = netip.MustParseAddr("192.168.77.11")
	if third := made(); second == first || third == second {
		t.Error("it is kept though it is none, or for another address")
	}
}
