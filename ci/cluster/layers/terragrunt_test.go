package layers_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/test/kubetest"
)

// castle walks the table; ejected layers run by plain Terragrunt in the order of their units.
func TestTheGraphIsThatOfTheTable(t *testing.T) {
	r := newRunner(t)
	want := map[string][]string{}
	for _, layer := range layers.All {
		want[layer.Folder] = nil
		for _, need := range layer.Needs {
			want[layer.Folder] = append(want[layer.Folder], layers.Named(need).Folder)
		}
	}
	for _, cluster := range clusters {
		out, err := r.run(t, cluster, "find", "--json", "--dag", "--dependencies")
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var units []struct {
			Path         string
			Dependencies []string
		}
		if err := json.Unmarshal([]byte(out), &units); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		got := map[string][]string{}
		for _, unit := range units {
			got[unit.Path] = unit.Dependencies
		}
		if !maps.EqualFunc(got, want, slices.Equal[[]string]) {
			t.Errorf("%s: %v, want %v", cluster, got, want)
		}
	}
}

func TestTheFilesAreFormatted(t *testing.T) {
	r := newRunner(t)
	if out, err := r.run(t, "", "hcl", "fmt", "--check"); err != nil {
		t.Errorf("terragrunt hcl fmt: %v\n%s", err, out)
	}
	out, err := exec.CommandContext(t.Context(), r.env["TG_TF_PATH"], "fmt", "-check", "-recursive", "-diff", filepath.Join(r.terragrunt, "modules")).CombinedOutput()
	if err != nil {
		t.Errorf("tofu fmt: %v\n%s", err, out)
	}
}

func TestEveryLayerOfEveryClusterIsValid(t *testing.T) {
	r := newRunner(t)
	r.localStates = true
	for _, cluster := range clusters {
		if out, err := r.run(t, cluster, "run", "--all", "--non-interactive", "--no-color", "--", "validate"); err != nil {
			t.Errorf("%s: %v\n%s", cluster, err, out)
		}
	}
	if calls := r.called(t); calls != nil {
		t.Errorf("validation waited for gates: %v", calls)
	}
}

func TestAPlanNeedsNoClusterAndLooksForItsMachinesAlone(t *testing.T) {
	r := newRunner(t)
	r.env["CASTLE_CHARTS"] = composed(t)
	// Nobody listens at port 1.
	r.env["KUBE_HOST"] = "https://127.0.0.1:1"
	r.env["CASTLE_PLANS"] = t.TempDir()
	out, _, err := r.runAll(t, "", "plan")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for layer, plan := range map[string]string{
		"1-secrets": "1 to add", "2-platform": "5 to add", "3-engine": "8 to add", "4-networking": "5 to add", "5-storage": "2 to add", "6-gitops": "10 to add",
	} {
		if !strings.Contains(out, "["+layer+"] tofu: Plan: "+plan+", 0 to change, 0 to destroy.") {
			t.Errorf("%s does not plan %s:\n%s", layer, plan, out)
		}
		_, name, _ := strings.Cut(layer, "-")
		stream := readAll(t, r.env["CASTLE_PLANS"], name+".json")
		if !strings.Contains(stream, `"@message":"Plan: `+plan+`, 0 to change, 0 to destroy."`) {
			t.Errorf("%s does not tell programs of its plan %s:\n%s", layer, plan, stream)
		}
		for _, canary := range canaries {
			if strings.Contains(stream, canary) {
				t.Errorf("%s stands in the plan of %s", canary, layer)
			}
		}
	}
	if calls := r.called(t); calls != nil {
		t.Errorf("the plan waited for gates: %v", calls)
	}
}

// What Proxmox's provider trusts, it alone trusts; who has that authority's key could else pass for any server.
func TestOnlyProxmoxsProviderIsGivenProxmoxsAuthority(t *testing.T) {
	r := newRunner(t)
	r.startProxmox(t)
	file := r.env["CASTLE_PROXMOX_CERTIFICATES"]
	for _, layer := range layerFolders {
		out, err := r.run(t, "sandbox/"+layer, "render", "--format=json", "--log-disable")
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if got := strings.Contains(out, file); got != (layer == "2-platform") {
			t.Errorf("%s is given Proxmox's authority: %t", layer, got)
		}
	}
	if out, _, err := r.runAll(t, "2-platform", "apply", "-auto-approve"); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if err := os.WriteFile(file, []byte(readAll(t, filepath.Join(r.terragrunt, "live", "sandbox"), "pve-root-ca.pem")), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, _, err := r.runAll(t, "2-platform", "apply", "-auto-approve"); err == nil || !strings.Contains(out, "certificate signed by unknown authority") {
		t.Errorf("with another authority the provider says %v\n%s", err, out)
	}
}

func TestStatesGoWhereTheDescriptionSays(t *testing.T) {
	r := newRunner(t)
	description := filepath.Join(r.terragrunt, "live", "sandbox", "cluster.yaml")
	local := readAll(t, filepath.Dir(description), "cluster.yaml")
	for _, test := range []struct {
		state, backend string
		config         map[string]any
	}{
		{"{backend: local}", "local", map[string]any{"path": r.env["CASTLE_STATE"] + "/engine/terraform.tfstate"}},
		{"{backend: s3, s3: {bucket: states, region: eu-west-1}}", "s3", map[string]any{
			"bucket": "states", "key": "sandbox/engine/terraform.tfstate", "region": "eu-west-1", "use_lockfile": true,
		}},
		{"{backend: s3, s3: {bucket: states, endpoint: 'https://s3.example.org'}}", "s3", map[string]any{
			"bucket": "states", "key": "sandbox/engine/terraform.tfstate", "region": "us-east-1", "use_lockfile": true,
			"endpoints": map[string]any{"s3": "https://s3.example.org"}, "use_path_style": true,
			"skip_credentials_validation": true, "skip_metadata_api_check": true, "skip_region_validation": true,
			"skip_requesting_account_id": true, "skip_s3_checksum": true,
		}},
	} {
		text, _, found := strings.Cut(local, "\nstate:")
		if !found {
			t.Fatal("the description says nothing about the state")
		}
		if err := os.WriteFile(description, []byte(text+"\nstate: "+test.state+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := r.run(t, "sandbox/3-engine", "render", "--format=json", "--log-disable")
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		var rendered struct {
			State struct {
				Backend string
				Config  map[string]any
				Init    bool `json:"disable_init"`
			} `json:"remote_state"`
		}
		if err := json.Unmarshal([]byte(out), &rendered); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if got := rendered.State; got.Backend != test.backend || !reflect.DeepEqual(got.Config, test.config) {
			t.Errorf("%s gives %s %v, want %v", test.state, got.Backend, got.Config, test.config)
		}
		if !rendered.State.Init {
			t.Errorf("%s: Terragrunt would make the bucket by itself", test.state)
		}
	}
}

func TestAMissingSecretStopsAllLayersAndIsNamed(t *testing.T) {
	r := newRunner(t)
	r.setInventory(t, "INFISICAL_CLIENT_ID", "INFISICAL_FLUX_CLIENT_ID", "INFISICAL_WORKLOADS_CLIENT_ID", "GITOPS_USERNAME")
	out, results, err := r.runAll(t, "", "apply", "-auto-approve")
	if err == nil || !strings.Contains(out, "GITOPS_TOKEN, SOPS_AGE_KEY") {
		t.Errorf("%v\n%s", err, out)
	}
	for layer, result := range results {
		want := "early exit"
		if layer == "1-secrets" {
			want = "failed"
		}
		if result != want {
			t.Errorf("%s: %s, want %s", layer, result, want)
		}
	}
	if calls := r.called(t); calls != nil {
		t.Errorf("calls %v", calls)
	}
}

func TestALayerStopsAtItsGateGoesOnThereAndIsLeftUnchanged(t *testing.T) {
	r := newRunner(t)
	r.env["CASTLE_CHARTS"] = composed(t)
	server := kubetest.Start(t)
	maps.Copy(r.env, server.Env())
	r.startProxmox(t)
	bootstrapped(t, server)

	// First, with a gate that fails inside of a layer.
	r.env[failVariable] = "wait engine-webhook"
	out, results, err := r.runAll(t, "", "apply", "-auto-approve")
	if err == nil {
		t.Fatalf("a failed gate passed:\n%s", out)
	}
	for layer, want := range map[string]string{"3-engine": "failed", "6-gitops": "failed", "4-networking": "succeeded", "5-storage": "succeeded"} {
		if results[layer] != want {
			t.Errorf("%s: %s, want %s\n%s", layer, results[layer], want, out)
		}
	}
	calls := r.called(t)
	for layer, want := range map[string][]string{
		"engine":     {"wait engine-webhook"},
		"networking": {"wait networking-webhook"},
		"gitops":     {"wait gitops-tenancy", "wait --timeout=30m gitops-store", "wait gitops-notifications"},
	} {
		if got := of(layer, calls); !slices.Equal(got, want) {
			t.Errorf("gates of %s: %v, want %v", layer, got, want)
		}
	}

	// The next run goes on where that one stopped, and only there.
	delete(r.env, failVariable)
	out, _, err = r.runAll(t, "", "apply", "-auto-approve")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for layer, want := range map[string]string{"4-networking": "0 added, 0 changed, 0 destroyed", "5-storage": "0 added, 0 changed, 0 destroyed"} {
		if !strings.Contains(out, "["+layer+"] tofu: Apply complete! Resources: "+want) {
			t.Errorf("%s: not %s\n%s", layer, want, out)
		}
	}
	calls = r.called(t)
	if got, want := of("engine", calls), []string{"wait engine-webhook", "wait engine-store"}; !slices.Equal(got, want) {
		t.Errorf("gates of engine: %v, want %v", got, want)
	}

	if got, want := of("gitops", calls), []string{"wait --timeout=30m gitops-store", "wait gitops-secrets"}; !slices.Equal(got, want) {
		t.Errorf("gates of gitops: %v, want %v", got, want)
	}

	// A complete cluster is left as it is.
	out, _, err = r.runAll(t, "", "apply", "-auto-approve")
	if got := strings.Count(out, "Apply complete! Resources: 0 added, 0 changed, 0 destroyed."); err != nil || got != len(layerFolders) {
		t.Errorf("%d of 6 layers were left unchanged, %v\n%s", got, err, out)
	}
	if calls = r.called(t); calls != nil {
		t.Errorf("the second run waited where it changed nothing: %v", calls)
	}

	noSecretIn(t, r.env["CASTLE_STATE"], out)
	readinessIsLookedForEarly(t, server)
	imagesAreListed(t, server)
	fluxCommandsFindIt(t, server)
	if t.Failed() {
		return
	}

	// What a run made and could not note is taken up.
	if err := os.RemoveAll(filepath.Join(r.env["CASTLE_STATE"], "storage")); err != nil {
		t.Fatal(err)
	}
	if out, _, err = r.runAll(t, "5-storage", "apply", "-auto-approve"); err != nil || !strings.Contains(out, "Resources: 2 added") {
		t.Errorf("after a lost state: %v\n%s", err, out)
	}
}

// noSecretIn looks for the canaries in all states and in what was printed.
func noSecretIn(t *testing.T, states, out string) {
	t.Helper()
	seen := 0
	err := filepath.WalkDir(states, func(name string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		if strings.HasSuffix(name, ".tfstate") {
			seen++
			if !strings.Contains(string(data), "encrypted_data") {
				t.Errorf("%s is not encrypted", name)
			}
		}
		out += string(data)
		return err
	})
	if err != nil || seen != len(layerFolders) {
		t.Errorf("%d of 6 states were found, %v", seen, err)
	}
	for _, canary := range canaries {
		if strings.Contains(out, canary) {
			t.Errorf("%s stands in a state or in what was printed", canary)
		}
	}
}

// readinessIsLookedForEarly: a delay before the first look is waited out by every creation, by what depends on it too.
func readinessIsLookedForEarly(t *testing.T, server *kubetest.Server) {
	t.Helper()
	deployments, daemonSets := workloads(t, server)
	pods := map[string]corev1.PodSpec{}
	for _, deployment := range deployments {
		pods[deployment.Name] = deployment.Spec.Template.Spec
	}
	for _, daemonSet := range daemonSets {
		pods[daemonSet.Name] = daemonSet.Spec.Template.Spec
	}
	for _, name := range []string{"external-secrets-webhook", "metallb-controller", "metallb-speaker", "source-controller"} {
		if _, has := pods[name]; !has {
			t.Errorf("there is no %s", name)
		}
	}
	for name, pod := range pods {
		for _, container := range pod.Containers {
			if probe := container.ReadinessProbe; probe != nil && (probe.InitialDelaySeconds > 1 || probe.PeriodSeconds > 2) {
				t.Errorf("%s is looked at after %d s, then every %d s", name, probe.InitialDelaySeconds, probe.PeriodSeconds)
			}
		}
	}
}

// Where the machines are there already, the layer platform is no more than a record of them: no provider is started, and nothing is imported.
func TestMachinesThatAreThereAreOnlyNoted(t *testing.T) {
	r := newRunner(t)
	file := filepath.Join(r.terragrunt, "live", "sandbox", "cluster.yaml")
	text := readAll(t, filepath.Dir(file), "cluster.yaml")
	text = strings.Replace(text, "platform: sandbox\n", "platform: talos\n", 1)
	text = regexp.MustCompile(`(?m)^proxmox:\n(  .*\n)+vmIDs: .*\n`).ReplaceAllString(text, "")
	text = regexp.MustCompile(`vmID: .*\}`).ReplaceAllString(text, "installDisk: /dev/sda}")
	text = regexp.MustCompile(`(?m)^  infisical:\n(    .*\n)+`).ReplaceAllString(text, "  infisical: none\n")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, err := r.runAll(t, "2-platform", "apply", "-auto-approve")
	if err != nil || !strings.Contains(out, "Resources: 5 added, 0 changed, 0 destroyed.") || strings.Contains(out, "bpg/proxmox") {
		t.Errorf("%v\n%s", err, out)
	}
	if calls := r.called(t); calls != nil {
		t.Errorf("the layer waited for gates: %v", calls)
	}
}
