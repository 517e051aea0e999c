//go:build linux

package world

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestAServiceIsTrustedByWhoHasTheWorldsAuthority(t *testing.T) {
	folder := t.TempDir()
	made, err := openAuthority(folder)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	pair, err := certificate(made, netip.MustParseAddr("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	server.TLS = &tls.Config{Certificates: []tls.Certificate{*pair}}
	server.StartTLS()
	defer server.Close()

	// Another process finds the same authority.
	read, err := openAuthority(folder)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(read.CrtPEM)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}}
	response, err := client.Get(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if _, err := certificate(read, netip.MustParseAddr("127.0.0.1")); err != nil {
		t.Errorf("the authority that was read cannot sign: %v", err)
	}
}

func TestAnAuthorityThatCannotBeReadSaysWhatToDo(t *testing.T) {
	for _, text := range []string{"", "no PEM", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"} {
		folder := t.TempDir()
		if err := os.WriteFile(filepath.Join(folder, "ca.pem"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := openAuthority(folder); err == nil || !strings.Contains(err.Error(), "reset the sandbox") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
