package hypervisor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/sandbox/proxmox"
)

// authority makes a certificate authority: its certificate and its key, in PEM.
func authority(t *testing.T) (certificate, key []byte) {
	t.Helper()
	return signed(t, x509.Certificate{Subject: pkix.Name{CommonName: "Proxmox Virtual Environment"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)})
}

// signed makes a certificate that its own key has signed.
func signed(t *testing.T, template x509.Certificate) (certificate, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template.SerialNumber = big.NewInt(1)
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

// serve serves a Proxmox with a certificate, and nothing else of a chain, at 127.0.0.1.
func serve(t *testing.T, certificate tls.Certificate) *config.Cluster {
	t.Helper()
	simulator, err := proxmox.New(proxmox.Options{File: filepath.Join(t.TempDir(), "proxmox.json"), Tokens: []string{token}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(simulator.Close)
	server := httptest.NewUnstartedServer(nil)
	server.Config = simulator.HTTP()
	server.Config.ErrorLog = nil
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	server.StartTLS()
	t.Cleanup(server.Close)
	cluster := &config.Cluster{VMIDs: config.Range{First: 421, Last: 432}}
	cluster.Proxmox.URL = server.URL + "/"
	return cluster
}

// connects says whether castle's client and, with what Verify gives for them, the tools' get through.
func connects(t *testing.T, cluster *config.Cluster, certificates []byte) error {
	t.Helper()
	roots, err := Roots(certificates)
	if err != nil {
		t.Fatal(err)
	}
	given, verifyErr := Verify(t.Context(), cluster, roots, certificates)
	h := Open(cluster, roots, token)
	defer h.Close()
	if _, err := h.VMs(t.Context()); (err == nil) != (verifyErr == nil) && !strings.Contains(verifyErr.Error(), "OpenTofu") && !strings.Contains(verifyErr.Error(), "renew it") {
		t.Errorf("Verify says %v, and the client %v", verifyErr, err)
	}
	if verifyErr != nil {
		return verifyErr
	}
	if roots, err = Roots(given); err != nil {
		t.Fatal(err)
	}
	tool := *cluster
	tool.Proxmox.Fingerprint = "" // the tools know of none
	h = Open(&tool, roots, token)
	defer h.Close()
	if _, err := h.VMs(t.Context()); err != nil {
		t.Errorf("Verify says that the tools get through: %v", err)
	}
	return nil
}

func TestProxmoxIsKnownByItsAuthorityOrByTheFingerprint(t *testing.T) {
	ca, key := authority(t)
	otherCA, _ := authority(t)
	address := netip.MustParseAddr("127.0.0.1")
	certificate, err := proxmox.Certificate(filepath.Join(t.TempDir(), proxmox.CertificateFile), ca, key, proxmox.Node{Name: "pve", Address: address})
	if err != nil {
		t.Fatal(err)
	}
	mark := fingerprint(certificate.Leaf)
	wrong := strings.Repeat("AB:", 31) + "AB"
	for name, test := range map[string]struct {
		ca    []byte
		mark  string
		wants []string // of the error
	}{
		"its authority":             {ca: ca},
		"among others":              {ca: append(otherCA, ca...)},
		"the fingerprint":           {mark: mark},
		"in small letters":          {mark: strings.ToLower(mark)},
		"another authority":         {ca: otherCA, wants: []string{"not signed by the authority in pve-root-ca.pem", mark, "/etc/pve/pve-root-ca.pem"}},
		"another fingerprint":       {mark: wrong, wants: []string{"expected " + wrong, "got " + mark, "if it was renewed", "Node → System → Certificates"}},
		"nothing but the system's":  {wants: []string{"no authority that this machine knows", "ca: pve-root-ca.pem", mark}},
		"the leaf as its authority": {ca: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Leaf.Raw})},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := serve(t, certificate)
			if cluster.Proxmox.Fingerprint = test.mark; test.ca != nil {
				cluster.Proxmox.CA = "pve-root-ca.pem"
			}
			err := connects(t, cluster, test.ca)
			if err == nil && test.wants == nil {
				return
			}
			if err == nil || test.wants == nil {
				t.Fatalf("got %v", err)
			}
			for _, want := range test.wants {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v does not say %s", err, want)
				}
			}
		})
	}
}

// The provider insists on name and time, whatever castle knows of the certificate.
func TestACertificateThatTheProviderWouldRefuseIsRefusedBeforehand(t *testing.T) {
	local := []net.IP{net.IPv4(127, 0, 0, 1)}
	for name, test := range map[string]struct {
		certificate x509.Certificate
		want        string
	}{
		"signed by itself": {x509.Certificate{NotAfter: time.Now().Add(time.Hour), IPAddresses: local}, ""},
		"for other names":  {x509.Certificate{NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"pve", "pve.lan"}}, "not for 127.0.0.1, but for pve, pve.lan"},
		"at its end":       {x509.Certificate{NotAfter: time.Now().Add(-time.Hour), IPAddresses: local}, "renew it"},
	} {
		t.Run(name, func(t *testing.T) {
			test.certificate.NotBefore = time.Now().Add(-2 * time.Hour)
			text, key := signed(t, test.certificate)
			pair, err := tls.X509KeyPair(text, key)
			if err != nil {
				t.Fatal(err)
			}
			cluster := serve(t, pair)
			cluster.Proxmox.Fingerprint = fingerprint(pair.Leaf)
			if err := connects(t, cluster, nil); (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		})
	}
}

// A warning tells what that means; the tools are told by a variable of the provider's.
func TestAnInsecureProxmoxIsNotAsked(t *testing.T) {
	cluster := &config.Cluster{}
	cluster.Proxmox.URL, cluster.Proxmox.Insecure = "https://127.0.0.1:1/", true
	if given, err := Verify(t.Context(), cluster, nil, nil); given != nil || err != nil {
		t.Errorf("%s, %v", given, err)
	}
}

// Go's client would take the token along on the same host, to another port or to plain HTTP.
func TestTheTokenFollowsNoRedirectToAnotherServer(t *testing.T) {
	heard := make(chan string, 10)
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		heard <- r.Header.Get("Authorization")
	}))
	defer other.Close()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	defer server.Close()
	cluster := &config.Cluster{}
	cluster.Proxmox.URL = server.URL + "/"
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	h := Open(cluster, roots, token)
	defer h.Close()
	if _, err := h.VMs(t.Context()); err == nil || !strings.Contains(err.Error(), "does not get the credentials") {
		t.Errorf("got %v", err)
	}
	if len(heard) > 0 {
		t.Errorf("the other server was asked, with %q", <-heard)
	}
}
