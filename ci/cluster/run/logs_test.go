package run

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/timeline"
)

func TestACauseIsInTheToolsOwnWords(t *testing.T) {
	redact.Add("canary-of-a-secret")
	logs := newLogs(t.TempDir())
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
	if got := logs.cause(layers.Platform); !strings.HasPrefix(got, want) || !strings.HasSuffix(got, "\nwaiting for etcd quorum: 2 of 3 members") || strings.Count(got, "quorum") != 1 ||
		strings.Contains(got, "canary") {
		t.Errorf("got %q", got)
	}
	kept, err := os.ReadFile(filepath.Join(logs.folder, "platform.log"))
	if err != nil || strings.Contains(string(kept), "canary") || !strings.Contains(string(kept), "Creating") {
		t.Errorf("kept %q, %v", kept, err)
	}
}

func TestAToolWithoutAnErrorIsQuotedByItsLastLines(t *testing.T) {
	logs := newLogs(t.TempDir())
	for _, line := range []string{"one", "two", "three", "", "four"} {
		logs.write("3-engine", line)
	}
	if got := logs.cause(layers.Engine); got != "two\nthree\nfour" {
		t.Errorf("got %q", got)
	}
}

func TestALayerInWhichNothingChangedSaysSo(t *testing.T) {
	logs := newLogs(t.TempDir())
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
		end(timeline.KindStep, layers.Platform, timeline.ResultOK), end(timeline.KindLayer, layers.Platform, timeline.ResultOK),
		end(timeline.KindStep, layers.Engine, timeline.ResultUnchanged), end(timeline.KindLayer, layers.Engine, timeline.ResultOK),
		end(timeline.KindLayer, layers.Networking, timeline.ResultFailed), end(timeline.KindLayer, layers.Storage, timeline.ResultOK),
	}) {
		if event.Kind == timeline.KindLayer {
			results[event.Layer] = event.Result
		}
	}
	want := map[string]string{layers.Platform: "ok", layers.Engine: "unchanged", layers.Networking: "failed", layers.Storage: "ok"}
	if !maps.Equal(results, want) {
		t.Errorf("got %v, want %v", results, want)
	}
}
