package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestACertificatesFileIsAWholeOneOrRefusedWithTheFix(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(live, "sandbox", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	authority, key := read("pve-root-ca.pem"), read("pve-root-ca.key")
	folder := t.TempDir()
	for text, want := range map[string]string{
		authority: "",
		"Proxmox's\n" + authority + "\n" + authority: "",
		"": "not a whole certificate in PEM",
		strings.TrimSuffix(authority, "-----END CERTIFICATE-----\n"): "not a whole certificate in PEM",
		authority[:len(authority)/2] + "\n" + authority:              "not a whole certificate in PEM",
		"\x30\x82\x05\x99": "not a whole certificate in PEM",
		authority + key:    "holds a private key",
		"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n": "is no X.509 certificate",
		"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n":   "holds a PUBLIC KEY that is no X.509 certificate",
		strings.Replace(authority, "\n", "\n!", 2):                       "not a whole certificate in PEM",
	} {
		if err := os.WriteFile(filepath.Join(folder, "ca.pem"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		certificates, err := Proxmox{CA: "ca.pem"}.Certificates(folder)
		switch {
		case want == "" && (err != nil || strings.Count(string(certificates), "BEGIN") != strings.Count(text, "BEGIN") || strings.Contains(string(certificates), "Proxmox's")):
			t.Errorf("%q: %v", text, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "ca.pem ")):
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
