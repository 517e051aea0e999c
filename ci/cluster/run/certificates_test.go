package run

import (
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/cluster/config"
)

const askVariable = "RUN_TEST_ASK"

// TestMain is also what Terragrunt starts (isolation_test.go), and a tool as the layer platform runs it: a program in
// Go that trusts the system's authorities.
func TestMain(m *testing.M) {
	if started, err := playTool(); started {
		if err != nil {
			_, _ = os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(1)
		}
		os.Exit(0)
	}
	address := os.Getenv(askVariable)
	if address == "" {
		os.Exit(m.Run())
	}
	response, err := http.Get(address)
	if err != nil {
		_, _ = os.Stdout.WriteString(err.Error())
		os.Exit(1)
	}
	_ = response.Body.Close()
	os.Exit(0)
}

func certificateOf(server *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

// The servers that a layer speaks with: Proxmox, and others whose certificates the machine knows.
func TestTheToolsTrustProxmoxAndWhatTheSystemTrusts(t *testing.T) {
	server := func() *httptest.Server {
		made := httptest.NewUnstartedServer(http.NotFoundHandler())
		made.StartTLS()
		t.Cleanup(made.Close)
		return made
	}
	proxmox := server()
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "system.pem"), []byte("# an authority\n"+strings.TrimSpace(string(systemAuthority(t)))), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SSL_CERT_FILE", filepath.Join(folder, "system.pem"))
	described := &config.Cluster{}
	described.Proxmox.URL, described.Proxmox.CA = proxmox.URL, "pve-root-ca.pem"
	cluster := &Cluster{Folder: folder, Description: described}
	if err := os.WriteFile(filepath.Join(folder, "pve-root-ca.pem"), certificateOf(proxmox), 0o600); err != nil {
		t.Fatal(err)
	}
	done, err := cluster.writeCertificates(certificateOf(proxmox))
	if err != nil {
		t.Fatal(err)
	}
	file := cluster.certificates
	if info, err := os.Stat(filepath.Dir(file)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder is %v, %v", info, err)
	}
	ask := func(environment ...string) string {
		command := exec.CommandContext(t.Context(), os.Args[0])
		command.Env = append(slices.Clone(environment), askVariable+"="+proxmox.URL)
		out, err := command.Output()
		if err == nil {
			return ""
		}
		return string(out)
	}
	if said := ask("SSL_CERT_FILE=" + file); said != "" {
		t.Errorf("a tool does not trust Proxmox: %s", said)
	}
	if said := ask("SSL_CERT_FILE="+file, "SSL_CERT_DIR="+t.TempDir()); said != "" {
		t.Errorf("with folders of its own, a tool does not trust Proxmox: %s", said)
	}
	if said := ask("SSL_CERT_FILE=" + filepath.Join(folder, "system.pem")); !strings.Contains(said, "unknown authority") {
		t.Errorf("without castle, a tool trusts Proxmox: %q", said)
	}
	text, err := os.ReadFile(file)
	if err != nil || strings.Count(string(text), "\n-----BEGIN") != 2 {
		t.Errorf("the system's authority is not in it, or not by itself, %v:\n%s", err, text)
	}
	done()
	if _, err := os.Stat(filepath.Dir(file)); !os.IsNotExist(err) || cluster.certificates != "" {
		t.Errorf("the folder is left: %v", err)
	}
}

// systemAuthority is any certificate.
func systemAuthority(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile("../../../terragrunt/live/sandbox/pve-root-ca.pem")
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Go's own list is not to be had otherwise.
func TestTheSystemsAuthoritiesAreLookedForWhereGoDoes(t *testing.T) {
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(root)), "src/crypto/x509/root_linux.go"))
	if err != nil {
		t.Fatal(err)
	}
	_, list, _ := strings.Cut(string(source), "var certFiles = []string{")
	list, _, _ = strings.Cut(list, "\n}")
	var files []string
	for line := range strings.Lines(list) {
		if _, after, found := strings.Cut(line, `"`); found {
			file, _, _ := strings.Cut(after, `"`)
			files = append(files, file)
		}
	}
	if !slices.Equal(files, systemCertificates) {
		t.Errorf("Go looks for %q, and castle for %q", files, systemCertificates)
	}
}
