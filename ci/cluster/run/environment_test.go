package run

import (
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/secrets"
	"tazlab.net/castle/ci/cluster/talos/machineconfig"
)

// canaries are all that is secret about a cluster, by name, and the access that it gives.
func canaries(t *testing.T, described *config.Cluster) (map[string]string, *Access) {
	t.Helper()
	machines, err := machineconfig.NewSecrets(described)
	if err != nil {
		t.Fatal(err)
	}
	given := map[string]string{secrets.ProxmoxAPIToken: "castle@pve!blue=01234567-89ab-4cde-8f01-23456789abcd"}
	for _, name := range []string{secrets.InfisicalClientID, secrets.InfisicalClientSecret, secrets.InfisicalFluxClientID, secrets.InfisicalFluxClientSecret,
		secrets.InfisicalWorkloadsClientID, secrets.InfisicalWorkloadsClientSecret, secrets.StatePassphrase, secrets.AWSAccessKeyID,
		secrets.AWSSecretAccessKey, secrets.GitOpsToken, secrets.FluxAgeKey} {
		given[name] = "canary-of-" + name
	}
	values := secrets.NewValues()
	values.Add(given, secrets.SourceSOPS)
	access, err := newAccess(described, values, string(machines))
	if err != nil {
		t.Fatal(err)
	}
	encryption, err := access.encryption()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{
		"the Proxmox token's key": "01234567-89ab-4cde-8f01-23456789abcd", "the states' key": secrets.EncryptionKeys(encryption)[0],
		"administrator's key": string(access.Kube.Key), "cluster secret": access.Bundle.Cluster.Secret,
		"bootstrap token": access.Bundle.Secrets.BootstrapToken, "etcd's encryption": access.Bundle.Secrets.SecretboxEncryptionSecret,
		"trustd's token": access.Bundle.TrustdInfo.Token,
		"Talos's key":    string(access.Bundle.Certs.OS.Key), "Kubernetes's key": string(access.Bundle.Certs.K8s.Key),
		"etcd's key": string(access.Bundle.Certs.Etcd.Key), "the aggregator's key": string(access.Bundle.Certs.K8sAggregator.Key),
		"the service accounts' key": string(access.Bundle.Certs.K8sServiceAccount.Key),
	}
	maps.Copy(all, given)
	return all, access
}

// lines are what of a value is looked for: a key's lines, since what keeps it may indent them or encode the whole.
func lines(value string) []string {
	var list []string
	for line := range strings.Lines(value) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "-----") && len(line) > 12 {
			list = append(list, line)
		}
	}
	return list
}

func TestAHookKnowsEverySecretOfItsEnvironment(t *testing.T) {
	described, err := config.Load("../../../terragrunt/live/blue")
	if err != nil {
		t.Fatal(err)
	}
	described.State.Backend, described.Proxmox.Insecure = config.StateS3, true
	all, access := canaries(t, described)
	all["the proxy's key"] = "canary-of-the-proxy"
	redact.Add(all["the proxy's key"]) // as the proxy does
	way := map[string]string{kube.HostVariable: "https://127.0.0.1:1", kube.CAVariable: "an authority", kube.ClientCertVariable: "a certificate",
		kube.ClientKeyVariable: all["the proxy's key"]}
	cluster := &Cluster{Layers: layersFolder, State: t.TempDir(), Description: described}
	given, err := cluster.given(access, filepath.Join(cluster.State, eventsFile), way)
	if err != nil {
		t.Fatal(err)
	}
	list := given.of(func(variable) bool { return true }) // more than any hook has
	environment := map[string]string{}
	for _, entry := range list {
		name, value, _ := strings.Cut(entry, "=")
		environment[name] = value
	}
	hook := redact.New(secretsIn(func(name string) string { return environment[name] })...)

	holding := map[string]bool{}
	for name, value := range environment {
		shown := hook.Redact(value)
		for canary, text := range all {
			for _, line := range lines(text) {
				if strings.Contains(value, line) {
					holding[name] = true
				}
				if strings.Contains(shown, line) {
					t.Errorf("%s shows %s", name, canary)
				}
			}
		}
	}
	if len(holding) != 9 {
		t.Errorf("the test finds secrets in %v", holding)
	}
	for canary, text := range all { // whoever shows it, and not only the variable
		for _, line := range lines(text) {
			given := slices.Contains(slices.Concat(ofTools[layers.Platform], ofTools[layers.Engine], []string{"the proxy's key"}), canary)
			if hidden := !strings.Contains(hook.Redact("x "+line), line); hidden != given {
				t.Errorf("%s is hidden: %v", canary, hidden)
			}
			if got := redact.Text(line); got != redact.Mark {
				t.Errorf("the run itself shows %s", canary)
			}
		}
	}
	for _, name := range []string{kube.HostVariable, kube.CAVariable, kube.ClientCertVariable, config.Variable, VariableBackends, "TF_VAR_inventory"} {
		if value := environment[name]; value == "" || hook.Redact(value) != value {
			t.Errorf("%s is hidden, or not there: %q", name, value)
		}
	}
	if got := hook.Redact(environment["TF_ENCRYPTION"]); !strings.Contains(got, "method.aes_gcm.castle") || !strings.Contains(got, "plan {") {
		t.Errorf("more than the key of the states is hidden: %s", got)
	}
}

// Each kind of thing that OpenTofu encrypts costs a derivation of the key whenever it starts.
func TestOnlyLayersThatReadOtherStatesAreGivenTheirEncryption(t *testing.T) {
	described, err := config.Load("../../../terragrunt/live/blue")
	if err != nil {
		t.Fatal(err)
	}
	_, access := canaries(t, described)
	own := t.TempDir()
	if err := os.CopyFS(own, os.DirFS(layersFolder)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(own, "modules", "gitops", "own.tf"), []byte("data \"terraform_remote_state\" \"platform\" {}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for folder, want := range map[string]bool{layersFolder: false, own: true, "": false} {
		cluster := &Cluster{Layers: folder, State: t.TempDir(), Description: described}
		given, err := cluster.given(access, os.DevNull, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(strings.Join(given.forStates(), "\n"), "remote_state_data_sources"); got != want {
			t.Errorf("%q: the states of other layers are decrypted: %v", folder, got)
		}
	}
}

func TestFluxsSecretsAreMadeOfTheSOPSFiles(t *testing.T) {
	described, err := config.Load("../../../terragrunt/live/blue")
	if err != nil {
		t.Fatal(err)
	}
	_, access := canaries(t, described)
	access.Values.Add(map[string]string{secrets.GitOpsUsername: "flux", secrets.GitOpsCA: "-----BEGIN CERTIFICATE-----"}, secrets.SourceSOPS)
	want := map[string]map[string]string{
		"flux-system": {"ca.crt": "-----BEGIN CERTIFICATE-----", "password": "canary-of-GITOPS_TOKEN", "username": "flux"},
		"sops-age":    {"age.agekey": "canary-of-SOPS_AGE_KEY"},
	}
	if got := fluxSecretsOf(access.Values); !reflect.DeepEqual(got, want) {
		t.Errorf("they are %v", got)
	}
}
