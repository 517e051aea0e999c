package machineconfig_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"

	clusterconfig "tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/talos/machineconfig"
)

// withPatches is blue's description with patches: below talos, at a worker, and in a file.
func withPatches(t *testing.T, talos, worker, file string) *clusterconfig.Cluster {
	t.Helper()
	data, err := os.ReadFile("../../../../terragrunt/live/blue/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(data), "kubernetes:\n", talos+"kubernetes:\n", 1)
	text = strings.Replace(text, "vmID: 424,", "vmID: 424, "+worker, 1)
	folder := filepath.Join(t.TempDir(), "blue")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"cluster.yaml": text, "patch.yaml": file} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := clusterconfig.Load(folder)
	if err != nil {
		t.Fatal(err)
	}
	handed, err := c.HandOver() // as the hooks get it
	if err != nil {
		t.Fatal(err)
	}
	again, err := clusterconfig.Handed(handed)
	if err != nil {
		t.Fatal(err)
	}
	if before, after := machineconfig.Check(c), machineconfig.Check(again); (before == nil) != (after == nil) {
		t.Errorf("before it is handed over: %v, after: %v", before, after)
	}
	return c
}

func TestPatchesAreAppliedForAllThenForTheRoleThenForTheNode(t *testing.T) {
	c := withPatches(t, `  patches:
    all:
      - machine: {sysctls: {vm.max_map_count: "1", fs.inotify.max_user_watches: "7"}}
      - patch.yaml
    controlplane:
      - {cluster: {apiServer: {extraArgs: {feature-gates: "X=true"}}}}
    worker:
      - |
        machine:
          sysctls: {vm.max_map_count: "2"}
          nodeLabels: {kind: worker}
`, `patches: [{machine: {sysctls: {vm.max_map_count: "3"}}}],`, `apiVersion: v1alpha1
kind: KmsgLogConfig
name: remote
url: tcp://192.168.1.9:5140
---
machine:
  env: {GRPC_GO_LOG: "1"}
`)
	if err := machineconfig.Check(c); err != nil {
		t.Fatal(err)
	}
	_, bundle := described(t, "blue")
	configs, _, err := machineconfig.Configs(c, bundle)
	if err != nil {
		t.Fatal(err)
	}
	for node, want := range map[string]struct{ count, label, gates string }{
		"blue-cp-1": {"1", "", "X=true"}, "blue-worker-1": {"3", "worker", ""}, "blue-worker-2": {"2", "worker", ""},
	} {
		data, err := configs[node].Bytes()
		if err != nil {
			t.Fatal(err)
		}
		config, err := configloader.NewFromBytes(data)
		if err != nil {
			t.Fatal(err)
		}
		machine := config.Machine()
		gates := ""
		if node == "blue-cp-1" {
			gates = strings.Join(config.Cluster().APIServer().ExtraArgs()["feature-gates"], "")
		}
		if machine.Sysctls()["vm.max_map_count"] != want.count || machine.Sysctls()["fs.inotify.max_user_watches"] != "7" || machine.NodeLabels()["kind"] != want.label ||
			gates != want.gates || len(config.Runtime().KmsgLogURLs()) != 1 {
			t.Errorf("%s: sysctls %v, labels %v, feature gates %q, logs to %v", node, machine.Sysctls(), machine.NodeLabels(), gates, config.Runtime().KmsgLogURLs())
		}
		if got := config.NetworkHostnameConfig().Hostname(); got != node {
			t.Errorf("%s is called %s", node, got)
		}
	}
}

func TestWhatTalosWouldNotTakeOfAPatchIsNamedOnceWithItsLine(t *testing.T) {
	for name, c := range map[string]struct{ talos, worker, file, says string }{
		"an unknown field": {"  patches:\n    worker:\n      - machine: {sysctl: {a: b}}\n", "", "", "cluster.yaml:30: talos.patches.worker[0]: error decoding document /v1alpha1/ (line 1): unknown keys found during decoding: machine: sysctl: a: b"},
		"an unknown kind":  {"", "patches: [patch.yaml],", "apiVersion: v1alpha1\nkind: Nonsense\n", `patch.yaml:1: patches of blue-worker-1[0]: error decoding document v1alpha1/Nonsense/ (line 1): "Nonsense" "v1alpha1": not registered`},
		"a value that Talos refuses": {"  patches:\n    all:\n      - machine: {nodeTaints: {\"not a key!\": NoSchedule}}\n", "", "",
			`cluster.yaml:30: talos.patches.all[0]: v1alpha1.Config: invalid machine node taints: name "not a key!" is invalid`},
		"a value of another kind, in JSON": {"", "patches: [patch.yaml],", `{"machine": {"kubelet": {"clusterDNS": "no list"}}}`, "patch.yaml:1: patches of blue-worker-1[0]: "},
	} {
		err := machineconfig.Check(withPatches(t, c.talos, c.worker, c.file))
		if err == nil || !strings.HasPrefix(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v\nwant %s", name, err, c.says)
		}
	}
}
