package lifecycle

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/cluster/timeline"
)

func TestACauseIsInTheToolsOwnWords(t *testing.T) {
	logs := newLogs(t.TempDir(), redact.New("canary-of-a-secret"))
	for _, message := range []string{
		"module.vm: Creating...",
		"Error: error waiting for VM clone\n\n  with proxmox_virtual_environment_vm.node[\"a\"],\n\ntask ended with canary-of-a-secret\n",
		"Terraform will retry",
		"castle: waiting for etcd quorum: 2 of 3 members",
		"castle: waiting for etcd quorum: 2 of 3 members",
	} {
		logs.write("2-platform", message)
	}
	if err := logs.close(); err != nil {
		t.Fatal(err)
	}
	want := "error waiting for VM clone\n\n  with proxmox_virtual_environment_vm.node[\"a\"],\n\ntask ended with "
	if got := logs.cause(LayerPlatform); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "\nwaiting for etcd quorum: 2 of 3 members") || strings.Count(got, "quorum") != 1 ||
		strings.Contains(got, "canary") {
		t.Errorf("got %q", got)
	}
	kept, err := os.ReadFile(filepath.Join(logs.folder, "platform.log"))
	if err != nil || strings.Contains(string(kept), "canary") || !strings.Contains(string(kept), "Creating") {
		t.Errorf("kept %q, %v", kept, err)
	}
}

func TestAToolWithoutAnErrorIsQuotedByItsLastLines(t *testing.T) {
	logs := newLogs(t.TempDir(), redact.New())
	for _, line := range []string{"one", "two", "three", "", "four"} {
		logs.write("3-engine", line)
	}
	if got := logs.cause(LayerEngine); got != "two\nthree\nfour" {
		t.Errorf("got %q", got)
	}
}

func TestStatesAreListedByAddress(t *testing.T) {
	got, err := addresses(`{"resources": [
		{"mode": "data", "type": "a", "name": "b", "instances": [{}]},
		{"mode": "managed", "type": "vm", "name": "node", "instances": [{"index_key": "cp-1"}, {"index_key": 2}]},
		{"module": "module.x", "mode": "managed", "type": "helm_release", "name": "r", "instances": [{}]}]}`)
	if err != nil {
		t.Fatal(err)
	}
	if want := `vm.node["cp-1"] vm.node[2] module.x.helm_release.r`; strings.Join(got, " ") != want {
		t.Errorf("got %q", got)
	}
}

func TestAGateStandsInItsLayer(t *testing.T) {
	for gate, layer := range map[string]string{"networking-webhook": "networking", "networking": "networking", "gitops-controllers": "gitops", "blog": "blog"} {
		if got := gateLayer(gate); got != layer {
			t.Errorf("%s: %s", gate, got)
		}
	}
}

func TestALayerInWhichNothingChangedSaysSo(t *testing.T) {
	logs := newLogs(t.TempDir(), redact.New())
	for _, folder := range []string{"2-platform", "3-engine", "4-networking"} {
		logs.write(folder, "Apply complete! Resources: 0 added, 0 changed, 0 destroyed.")
	}
	logs.write("5-storage", "Apply complete! Resources: 2 added, 0 changed, 0 destroyed.")
	if err := logs.close(); err != nil {
		t.Fatal(err)
	}
	end := func(kind, layer, result string) timeline.Event {
		return timeline.Event{Kind: kind, Layer: layer, Phase: timeline.PhaseEnd, Result: result}
	}
	results := map[string]string{}
	for _, event := range logs.judge([]timeline.Event{
		end(timeline.KindStep, LayerPlatform, timeline.ResultOK), end(timeline.KindLayer, LayerPlatform, timeline.ResultOK),
		end(timeline.KindStep, LayerEngine, timeline.ResultUnchanged), end(timeline.KindLayer, LayerEngine, timeline.ResultOK),
		end(timeline.KindLayer, LayerNetworking, timeline.ResultFailed), end(timeline.KindLayer, LayerStorage, timeline.ResultOK),
	}) {
		if event.Kind == timeline.KindLayer {
			results[event.Layer] = event.Result
		}
	}
	want := map[string]string{LayerPlatform: "ok", LayerEngine: "unchanged", LayerNetworking: "failed", LayerStorage: "ok"}
	if !maps.Equal(results, want) {
		t.Errorf("got %v, want %v", results, want)
	}
}
