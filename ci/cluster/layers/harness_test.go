package layers_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/layers/charts"
	"tazlab.net/castle/ci/cluster/layers/postrender"
	"tazlab.net/castle/ci/cluster/layers/state"
	"tazlab.net/castle/ci/sandbox/proxmox"
	"tazlab.net/castle/ci/test/needs"
)

// TestMain is also the castle-cluster that the layers call: this program under that name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "castle-cluster" {
		if err := hook(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// What tells a gate what to do.
const (
	callsVariable = "LAYERS_TEST_CALLS" // file that gets a line for each call
	failVariable  = "LAYERS_TEST_FAIL"  // the call that fails
)

// webhooks are the configurations that would call pods, of which a bare API server has none.
var webhooks = map[string][]string{
	"wait engine-webhook":     {"secretstore-validate", "externalsecret-validate"},
	"wait networking-webhook": {"metallb-webhook-configuration"},
}

// hook notes that a gate was called, and opens the two gates before which nothing can be applied by taking away what they
// stand for.
func hook(args []string) error {
	call := strings.Join(args, " ")
	if args[0] == "postrender" {
		client, err := kube.FromEnv(os.Getenv)
		if err != nil {
			return err
		}
		return postrender.Run(context.Background(), args[1], postrender.InCluster(client), os.Stdin, os.Stdout)
	}
	calls, err := os.OpenFile(os.Getenv(callsVariable), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(calls, call); err != nil {
		return errors.Join(err, calls.Close())
	}
	if err := calls.Close(); err != nil {
		return err
	}
	if call == os.Getenv(failVariable) {
		// In words that Terragrunt by itself would take for a reason to run the layer again.
		return errors.New("the provider's webhook did not answer: context deadline exceeded")
	}
	if strings.HasSuffix(call, " gitops-store") {
		return awaitStore()
	}
	if webhooks[call] == nil {
		return nil
	}
	client, err := newClient(os.Getenv)
	if err != nil {
		return err
	}
	for _, name := range webhooks[call] {
		err := client.AdmissionregistrationV1().ValidatingWebhookConfigurations().Delete(context.Background(), name, metav1.DeleteOptions{})
		if err != nil {
			return err
		}
	}
	return nil
}

// awaitStore waits as the real gate does: until the engine has its store, or has failed.
func awaitStore() error {
	for deadline := time.Now().Add(5 * time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		calls, err := os.ReadFile(os.Getenv(callsVariable))
		switch {
		case err != nil:
			return err
		case bytes.Contains(calls, []byte("wait engine-store\n")):
			return nil
		case strings.HasPrefix(os.Getenv(failVariable), "wait engine"): // as the event log tells
			return errors.New("layer engine failed, which gitops waits for")
		}
	}
	return errors.New("the engine neither got its store nor failed")
}

// newClient reads what the providers read.
func newClient(getenv func(string) string) (*kubernetes.Clientset, error) {
	return kubernetes.NewForConfig(&rest.Config{Host: getenv("KUBE_HOST"), TLSClientConfig: rest.TLSClientConfig{
		CAData:   []byte(getenv("KUBE_CLUSTER_CA_CERT_DATA")),
		CertData: []byte(getenv("KUBE_CLIENT_CERT_DATA")),
		KeyData:  []byte(getenv("KUBE_CLIENT_KEY_DATA")),
	}})
}

// repositoryOnly is the chart that no test can install.
const repositoryOnly = "longhorn"

// composed puts the charts together and gives their folder.
func composed(t *testing.T) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "charts")
	left, err := charts.ComposeAll(terragrunt, folder, func(name string) (string, error) { return needs.Tool(t, name), nil })
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(left, []string{repositoryOnly}) {
		t.Errorf("charts that only a repository has: %v", left)
	}
	return folder
}

// runner runs terragrunt on a copy of the project's files, with the environment that castle gives it.
type runner struct {
	localStates bool   // whatever the description says: no store is there
	terragrunt  string // the folder
	program     string
	env         map[string]string
	calls       string
}

// canaries are secrets, to be looked for where none may be.
var canaries = []string{"canary-of-the-client-id", "canary-of-the-client-secret", "canary-of-the-passphrase"}

// encryption is castle's in form. The key is derived with the least work that OpenTofu accepts.
const encryption = `{
  "key_provider": {"pbkdf2": {"castle": {"iterations": 200000, "hash_function": "sha256", "passphrase": "canary-of-the-passphrase"}}},
  "method": {"aes_gcm": {"castle": {"keys": "${key_provider.pbkdf2.castle}"}}},
  "state": {"method": "method.aes_gcm.castle", "enforced": true},
  "plan": {"method": "method.aes_gcm.castle", "enforced": true}
}`

// builtProviders by their address, and the tool that each is built by.
var builtProviders = map[string]string{
	"hashicorp/helm": "provider-helm", "alekc/kubectl": "provider-kubectl",
	"hashicorp/kubernetes": "provider-kubernetes", "bpg/proxmox": "provider-proxmox",
}

func newRunner(t *testing.T) runner {
	t.Helper()
	scratch := t.TempDir()
	r := runner{
		terragrunt: filepath.Join(scratch, "terragrunt"),
		program:    filepath.Join(needs.Tool(t, "terragrunt"), "terragrunt"),
		calls:      filepath.Join(scratch, "calls"),
	}
	if err := os.CopyFS(r.terragrunt, os.DirFS(terragrunt)); err != nil {
		t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	bin := filepath.Join(scratch, "bin")
	plugins := filepath.Join(scratch, "plugins")
	if err := errors.Join(os.Mkdir(bin, 0o755), os.Symlink(self, filepath.Join(bin, "castle-cluster"))); err != nil {
		t.Fatal(err)
	}
	root := readAll(t, r.terragrunt, "root.hcl")
	for _, match := range pinLines.FindAllStringSubmatch(root, -1) {
		name := builtProviders[match[1]]
		folder := filepath.Join(plugins, "registry.opentofu.org", match[1], match[3], "linux_"+runtime.GOARCH)
		program := "terraform-" + name
		if err := errors.Join(os.MkdirAll(folder, 0o755),
			os.Symlink(filepath.Join(needs.Tool(t, name), program), filepath.Join(folder, program+"_v"+match[3]))); err != nil {
			t.Fatal(err)
		}
	}
	settings := filepath.Join(scratch, "tofurc")
	text := fmt.Sprintf("provider_installation {\n  filesystem_mirror {\n    path = %q\n  }\n}\n", plugins)
	if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r.env = map[string]string{
		"PATH":               bin + ":" + os.Getenv("PATH"),
		"HOME":               filepath.Join(scratch, "home"),
		"TMPDIR":             scratch,
		"TG_TF_PATH":         filepath.Join(needs.Tool(t, "tofu"), "tofu"),
		"TF_CLI_CONFIG_FILE": settings,
		// Units that start at once replace each other's providers in the cache that Terragrunt would make.
		"TG_NO_AUTO_PROVIDER_CACHE_DIR":   "true",
		"TF_ENCRYPTION":                   encryption,
		"CHECKPOINT_DISABLE":              "1",
		"CASTLE_STATE":                    filepath.Join(scratch, "state"),
		"PROXMOX_VE_API_TOKEN":            "castle@pve!castle=00000000-0000-0000-0000-000000000000",
		"TF_VAR_infisical_flux_client_id": canaries[0], "TF_VAR_infisical_flux_client_secret": canaries[1],
		"TF_VAR_infisical_workloads_client_id": canaries[0], "TF_VAR_infisical_workloads_client_secret": canaries[1],
		callsVariable: r.calls,
	}
	r.setInventory(t, "INFISICAL_CLIENT_ID", "INFISICAL_FLUX_CLIENT_ID", "INFISICAL_WORKLOADS_CLIENT_ID", "GITOPS_USERNAME", "GITOPS_TOKEN", "GITOPS_CA", "SOPS_AGE_KEY")
	return r
}

// startProxmox simulates the machines' host, with the template and nothing else, has the sandbox's description name it, and the
// tools know its certificate.
func (r runner) startProxmox(t *testing.T) {
	t.Helper()
	host, err := proxmox.New(proxmox.Options{File: filepath.Join(t.TempDir(), "proxmox.json"), Tokens: []string{r.env["PROXMOX_VE_API_TOKEN"]}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(host.Close)
	template := proxmox.VM{ID: 900, Name: "talos", Cores: 2, MemoryMiB: 2048, Disks: []proxmox.Disk{{Interface: "scsi0", Bytes: 10 << 30}}}
	if err := host.Seed(proxmox.Guest{VM: template, Template: true}); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(host)
	server.Config = host.HTTP()
	server.StartTLS()
	t.Cleanup(server.Close)
	r.env["CASTLE_PROXMOX_CERTIFICATES"] = filepath.Join(t.TempDir(), "authorities.pem")
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(r.env["CASTLE_PROXMOX_CERTIFICATES"], certificate, 0o600); err != nil {
		t.Fatal(err)
	}

	description := filepath.Join(r.terragrunt, "live", "sandbox", "cluster.yaml")
	text, err := os.ReadFile(description)
	if err != nil {
		t.Fatal(err)
	}
	url := regexp.MustCompile(`(?m)^  url: https://\S+:8006/$`)
	if !url.Match(text) {
		t.Fatal("the description names no Proxmox host")
	}
	if err := os.WriteFile(description, url.ReplaceAll(text, []byte("  url: "+server.URL+"/")), 0o600); err != nil {
		t.Fatal(err)
	}
}

func (r runner) setInventory(t *testing.T, names ...string) {
	t.Helper()
	var inventory []map[string]string
	for _, name := range names {
		inventory = append(inventory, map[string]string{"name": name, "source": "SOPS"})
	}
	text, err := json.Marshal(inventory)
	if err != nil {
		t.Fatal(err)
	}
	r.env["TF_VAR_inventory"] = string(text)
}

// run gives what terragrunt printed in the units' folder, or in one layer's, for a cluster: "sandbox", or "sandbox/2-platform".
func (r runner) run(t *testing.T, cluster string, args ...string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, r.program, args...)
	name, unit, _ := strings.Cut(cluster, "/")
	command.Dir = filepath.Join(r.terragrunt, layers.UnitsFolder, unit)
	if name != "" {
		described, err := config.Load(filepath.Join(r.terragrunt, "live", name))
		if err != nil {
			t.Fatal(err)
		}
		if r.env[config.Variable], err = described.HandOver(); err != nil {
			t.Fatal(err)
		}
		if r.localStates {
			described.State = config.State{Backend: config.StateLocal}
		}
		backends, err := json.Marshal(state.Backends(described, r.env["CASTLE_STATE"]))
		if err != nil {
			t.Fatal(err)
		}
		r.env["CASTLE_BACKENDS"] = string(backends)
	}
	for _, name := range slices.Sorted(maps.Keys(r.env)) {
		command.Env = append(command.Env, name+"="+r.env[name])
	}
	command.WaitDelay = 10 * time.Second
	var out bytes.Buffer
	command.Stdout, command.Stderr = &out, &out
	begin := time.Now()
	err := command.Run()
	t.Logf("terragrunt %s: %s", strings.Join(args, " "), time.Since(begin).Round(10*time.Millisecond))
	return out.String(), err
}

// report is terragrunt's, by unit.
type report map[string]string

// runAll runs a command in all units of the sandbox that filter does not leave out, and gives each one's result.
func (r runner) runAll(t *testing.T, filter string, command ...string) (string, report, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "report.json")
	args := []string{"run", "--all", "--non-interactive", "--no-color", "--report-file=" + file, "--report-format=json"}
	if filter != "" {
		args = append(args, "--filter", filter)
	}
	out, runErr := r.run(t, "sandbox", append(append(args, "--"), command...)...)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var rows []struct{ Name, Result string }
	if err := json.Unmarshal(data, &rows); err != nil {
		t.Fatal(err)
	}
	results := report{}
	for _, row := range rows {
		results[row.Name] = row.Result
	}
	return out, results, runErr
}

// called are the hooks' calls since the last time, in their order.
func (r runner) called(t *testing.T) []string {
	t.Helper()
	data, err := os.ReadFile(r.calls)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = os.Remove(r.calls)
	}
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(data)), "\n")
}

// of are the calls that name a layer or a gate within it.
func of(layer string, calls []string) []string {
	var some []string
	for _, call := range calls {
		if slices.ContainsFunc(strings.Fields(call), func(word string) bool { return word == layer || strings.HasPrefix(word, layer+"-") }) {
			some = append(some, call)
		}
	}
	return some
}
