package talos

import (
	"context"
	"slices"
	"testing"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
)

func TestANodeAsksForImagesWhereItsConfigurationSays(t *testing.T) {
	y := newYard(t, 0)
	y.on(1)
	y.apply(1, machinetype.TypeControlPlane)
	y.stage(1, stageRunning)
	asks := func(node, registry string) (list []string) {
		for _, endpoint := range y.fleet.Endpoints(node, registry) {
			list = append(list, endpoint.String())
		}
		return list
	}
	for registry, want := range map[string]string{
		"192.168.77.13:5000": "https://192.168.77.13:5000/v2", "docker.io": "https://registry-1.docker.io/v2",
		"localhost:5000": "http://localhost:5000/v2", "127.0.0.1:443": "https://127.0.0.1:443/v2", "localhost": "https://localhost/v2",
	} {
		if got := asks("node-1", registry); !slices.Equal(got, []string{want}) {
			t.Errorf("without any mirror, for %s: %v", registry, got)
		}
	}
	// Other mirrors need no restart.
	changed := append(y.config(1, machinetype.TypeControlPlane), `---
apiVersion: v1alpha1
kind: RegistryMirrorConfig
name: 192.168.77.13:5000
endpoints: [{url: "http://192.168.77.13:5000"}]
---
apiVersion: v1alpha1
kind: RegistryMirrorConfig
name: quay.io
endpoints: [{url: "https://a.example/v2/"}, {url: "http://b.example:5000/v2/quay/", overridePath: true}, {url: "https://c.example/quay"}]
skipFallback: true
---
apiVersion: v1alpha1
kind: RegistryMirrorConfig
name: "*"
endpoints: [{url: "https://all.example"}]
---
apiVersion: v1alpha1
kind: RegistryTLSConfig
name: private.example
insecureSkipVerify: true
`...)
	if _, err := y.at(1, y.admin).ApplyConfiguration(context.Background(), &machineapi.ApplyConfigurationRequest{Data: changed, Mode: machineapi.ApplyConfigurationRequest_NO_REBOOT}); err != nil {
		t.Fatal(err)
	}
	for registry, want := range map[string][]string{
		"192.168.77.13:5000": {"http://192.168.77.13:5000/v2", "https://192.168.77.13:5000/v2"},
		"quay.io":            {"https://a.example/v2", "http://b.example:5000/v2/quay", "https://c.example/quay/v2"},
		"ghcr.io":            {"https://all.example/v2", "https://ghcr.io/v2"},
		"docker.io":          {"https://all.example/v2", "https://registry-1.docker.io/v2"},
		"private.example":    {"https://private.example/v2"},
	} {
		if got := asks("node-1", registry); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", registry, got, want)
		}
	}
	if got := asks("node-2", "quay.io"); !slices.Equal(got, []string{"https://quay.io/v2"}) {
		t.Errorf("a node that is not on: %v", got)
	}
}
