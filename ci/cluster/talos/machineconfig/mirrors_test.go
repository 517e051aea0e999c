package machineconfig_test

import (
	"testing"

	"github.com/siderolabs/talos/pkg/machinery/config/configloader"

	"tazlab.net/castle/ci/cluster/talos/machineconfig"
)

func TestMachinesPullFromTheMirrorsOfARegistryInTheirOrder(t *testing.T) {
	c := withPatches(t, `  registryMirrors:
    docker.io: [https://mirror.example.com, "http://192.168.1.9:5000"]
    "*": [https://harbor.example.com/v2/all/]
`, "", "")
	_, bundle := described(t, "blue")
	configs, _, err := machineconfig.Configs(c, bundle)
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range c.Nodes {
		data, err := configs[node.Name].Bytes()
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := configloader.NewFromBytes(data) // as the machine reads it
		if err != nil {
			t.Fatal(err)
		}
		mirrors := parsed.RegistryMirrorConfigs()
		hub, all := mirrors["docker.io"], mirrors["*"]
		if len(mirrors) != 2 || hub == nil || all == nil {
			t.Fatalf("%s: mirrors of %d registries: %v", node.Name, len(mirrors), mirrors)
		}
		if of := hub.Endpoints(); len(of) != 2 || of[0].Endpoint() != "https://mirror.example.com" || of[1].Endpoint() != "http://192.168.1.9:5000" || of[0].OverridePath() {
			t.Errorf("%s: docker.io from %v", node.Name, of)
		}
		if of := all.Endpoints(); len(of) != 1 || of[0].Endpoint() != "https://harbor.example.com/v2/all/" || !of[0].OverridePath() {
			t.Errorf("%s: others from %v", node.Name, of)
		}
		if hub.SkipFallback() {
			t.Errorf("%s: the registry itself is not asked", node.Name)
		}
	}
}
