package layers_test

import (
	"archive/zip"
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/providers"
	"tazlab.net/castle/ci/test/needs"
)

// packed is a provider's release: its program in a ZIP file, with something behind it.
func packed(t *testing.T, program, behind string) []byte {
	t.Helper()
	file, err := os.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var archive bytes.Buffer
	writer := zip.NewWriter(&archive)
	header := &zip.FileHeader{Name: filepath.Base(program) + "_v0.106.0", Method: zip.Store}
	header.SetMode(0o755)
	entry, err := writer.CreateHeader(header)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(entry, io.MultiReader(file, strings.NewReader(behind))); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	return archive.Bytes()
}

// fromAMirror has OpenTofu download the provider of Proxmox from a mirror (its documentation, "Provider Network Mirror Protocol"),
// which serves what release points at.
func (r runner) fromAMirror(t *testing.T, release *[]byte) {
	t.Helper()
	const name = "release.zip"
	server := httptest.NewTLSServer(http.StripPrefix("/registry.opentofu.org/bpg/proxmox/", http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch request.URL.Path {
		case "index.json":
			_, _ = io.WriteString(w, `{"versions": {"0.106.0": {}}}`)
		case "0.106.0.json":
			_, _ = fmt.Fprintf(w, `{"archives": {"linux_%s": {"url": %q}}}`, runtime.GOARCH, name)
		case name:
			w.Header().Set("Content-Type", "application/zip")
			_, _ = w.Write(*release)
		default:
			http.NotFound(w, request)
		}
	})))
	t.Cleanup(server.Close)
	settings := fmt.Sprintf("provider_installation {\n  network_mirror {\n    url = %q\n  }\n}\n", server.URL+"/")
	authority := filepath.Join(t.TempDir(), "authority.pem")
	if err := os.WriteFile(r.env["TF_CLI_CONFIG_FILE"], []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(authority, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	r.env["SSL_CERT_FILE"] = authority
}

// initialised runs the layer platform as on a machine that has not run it before, and gives the lock file that OpenTofu left.
func (r runner) initialised(t *testing.T) (lockFile, out string, err error) {
	t.Helper()
	unit := filepath.Join(r.terragrunt, layers.UnitsFolder, "2-platform")
	if err := os.RemoveAll(filepath.Join(unit, ".terragrunt-cache")); err != nil {
		t.Fatal(err)
	}
	out, _, err = r.runAll(t, "2-platform", "apply", "-auto-approve")
	walkErr := filepath.WalkDir(unit, func(name string, _ os.DirEntry, err error) error {
		if filepath.Base(name) == providers.LockFile {
			lockFile = name
		}
		return err
	})
	if walkErr != nil {
		t.Fatal(walkErr)
	}
	return lockFile, out, err
}

func TestAProviderThatIsNotTheOneOfTheFirstUseIsNotInstalled(t *testing.T) {
	r := newRunner(t)
	r.startProxmox(t)
	program := filepath.Join(needs.Tool(t, "provider-proxmox"), "terraform-provider-proxmox")
	good, evil := packed(t, program, ""), packed(t, program, "\x00")
	release := good
	r.fromAMirror(t, &release)
	states := t.TempDir()
	known := func() {
		t.Helper()
		locks, err := providers.Known(r.terragrunt, states)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(locks)
		if err != nil {
			t.Fatal(err)
		}
		r.env["CASTLE_PROVIDERS"] = string(text)
	}

	lockFile, out, err := r.initialised(t)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := providers.Note(lockFile, states); err != nil {
		t.Fatal(err)
	}
	known()
	if _, out, err := r.initialised(t); err != nil {
		t.Errorf("the same provider: %v\n%s", err, out)
	}
	r.called(t)
	release = evil
	if _, out, err := r.initialised(t); err == nil || !strings.Contains(strings.Join(strings.Fields(out), " "), "match any of the checksums") {
		t.Errorf("another byte: %v\n%s", err, out)
	}
	for _, call := range r.called(t) {
		if call != "layer fail platform" {
			t.Errorf("the layer went on: %s", call)
		}
	}

	// The repository's hashes are another, and come first.
	text, err := os.ReadFile(lockFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.terragrunt, providers.File), text, 0o600); err != nil {
		t.Fatal(err)
	}
	states, release = t.TempDir(), good
	known()
	if _, out, err := r.initialised(t); err != nil {
		t.Errorf("what the repository says: %v\n%s", err, out)
	}
	release = evil
	if _, _, err := r.initialised(t); err == nil {
		t.Error("with the repository's hashes, another byte passes")
	}

	// Another version is another first use.
	r.env["CASTLE_PROVIDERS"] = strings.ReplaceAll(r.env["CASTLE_PROVIDERS"], "0.106.0", "0.105.0")
	if _, out, err := r.initialised(t); err != nil {
		t.Errorf("hashes of another version: %v\n%s", err, out)
	}
}

// OpenTofu itself looks for the hashes; here in a folder, since there may be no registry.
func TestTheHashesOfAllProvidersAreWrittenDown(t *testing.T) {
	r := newRunner(t)
	t.Setenv("TF_CLI_ARGS_providers_lock", "-fs-mirror="+filepath.Join(filepath.Dir(r.env["TF_CLI_CONFIG_FILE"]), "plugins"))
	text, err := providers.Pin(t.Context(), r.env["TG_TF_PATH"], r.terragrunt, []string{"linux_" + runtime.GOARCH})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(r.terragrunt, providers.File), text, 0o600); err != nil {
		t.Fatal(err)
	}
	locks, err := providers.Known(r.terragrunt, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := readAll(t, r.terragrunt, "root.hcl")
	for _, match := range pinLines.FindAllStringSubmatch(root, -1) {
		if !strings.Contains(locks["registry.opentofu.org/"+match[1]][match[3]], `"h1:`) {
			t.Errorf("nothing is known of %s %s:\n%s", match[1], match[3], text)
		}
	}
	if _, err := providers.Pin(t.Context(), r.env["TG_TF_PATH"], r.terragrunt, []string{"plan9_" + runtime.GOARCH}); err == nil {
		t.Error("hashes were found for a platform without a release")
	}
}
