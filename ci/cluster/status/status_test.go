package status

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"tazlab.net/castle/ci/cluster/config"
	"tazlab.net/castle/ci/cluster/hypervisor"
	"tazlab.net/castle/ci/cluster/layers"
	"tazlab.net/castle/ci/cluster/talos"
)

// fake is what the states hold, and what the machines say; a layer without either has no state.
type fake struct {
	held  map[string][]string
	wrong map[string]error
	seen  []talos.NodeStatus
}

func (f fake) Resources(_ context.Context, layer string) ([]string, error) {
	return f.held[layer], f.wrong[layer]
}
func (f fake) Status(context.Context) []talos.NodeStatus { return f.seen }

func blue(t *testing.T) *config.Cluster {
	t.Helper()
	described, err := config.Load("../../../terragrunt/live/blue")
	if err != nil {
		t.Fatal(err)
	}
	return described
}

func TestEachLayerShowsWhatItsStateHolds(t *testing.T) {
	described := blue(t)
	f := fake{held: map[string][]string{layers.Platform: {"a", "b"}}, wrong: map[string]error{layers.Engine: errors.New("another passphrase")}}
	described.Storage, described.LoadBalancer = config.Storage{}, config.LoadBalancer{} // a cluster without both
	shown := func() (lines []string) {
		for _, layer := range layerStatus(t.Context(), described, f) {
			lines = append(lines, strings.TrimSpace(layer.Layer+" "+strings.Repeat("x", layer.Resources)+" "+layer.Problem))
		}
		return lines
	}
	if got := shown(); !slices.Equal(got, []string{"secrets", "platform xx", "engine  another passphrase", "gitops"}) {
		t.Errorf("got %q", got)
	}
	f.held[layers.Storage] = []string{"longhorn"}
	if got := shown(); !slices.Contains(got, "storage x none in cluster.yaml; create --remove-layer storage removes it") {
		t.Errorf("with storage that nobody wants: %q", got)
	}
}

func TestEachNodeShowsItsVMAndItsTalos(t *testing.T) {
	described := blue(t)
	described.Nodes = described.Nodes[:3]
	f := fake{seen: []talos.NodeStatus{{State: "configured", Version: "v1.13.9"}, {State: "maintenance"}, {State: "silent", Problem: "does not answer"}}}
	for name, c := range map[string]struct {
		platform string
		vms      []hypervisor.VM
		err      error
		want     string
	}{
		"made by castle": {config.PlatformProxmox, []hypervisor.VM{{ID: 421, Status: "running", Ours: true}, {ID: 422, Status: "stopped"}}, nil,
			"running configured v1.13.9 | stopped maintenance VM 422 is not this cluster's: it has no tag castle-blue | absent silent does not answer"},
		"Proxmox is silent": {config.PlatformProxmox, nil, errors.New("no route"),
			"unknown configured v1.13.9 no route | unknown maintenance no route | unknown silent no route"},
		"made by somebody": {config.PlatformTalos, nil, nil, "- configured v1.13.9 | - maintenance | - silent does not answer"},
	} {
		described.Platform = c.platform
		var lines []string
		for _, node := range nodeStatus(t.Context(), described, func(context.Context) ([]hypervisor.VM, error) { return c.vms, c.err }, f) {
			lines = append(lines, strings.TrimSpace(node.VM+" "+node.Talos+" "+node.Problem))
		}
		if got := strings.Join(lines, " | "); got != c.want {
			t.Errorf("%s: %s", name, got)
		}
	}
}
