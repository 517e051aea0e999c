package talos

import (
	"context"
	"strings"
	"testing"

	machineapi "github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config/configpatcher"
	machinetype "github.com/siderolabs/talos/pkg/machinery/config/machine"
	"github.com/siderolabs/talos/pkg/machinery/constants"
)

// A control plane pulls etcd's image before there is an etcd, the kubelet's beside it, and those of its static pods when etcd has a quorum; its node
// comes when the kubelet is there.
func TestAMachinePullsWhatItRunsByItself(t *testing.T) {
	y := newYard(t, 0)
	comes := make(chan struct{})
	y.pulls = func(ctx context.Context, image string) error {
		select {
		case <-comes:
		case <-ctx.Done():
		}
		return ctx.Err()
	}
	y.on(1)
	y.stage(1, stageMaintenance)
	y.apply(1, machinetype.TypeControlPlane)
	y.stage(1, stageRunning)
	pulled := func(image string) func() bool { return func() bool { return y.last("pull "+image+":") != "" } }
	y.eventually("etcd's image is pulled", pulled(constants.EtcdImage))
	y.eventually("the kubelet's is", pulled(constants.KubeletImage))
	if err := y.at(1, y.admin).Bootstrap(t.Context(), &machineapi.BootstrapRequest{}); err != nil {
		t.Fatal(err)
	}
	if pulled(constants.KubernetesAPIServerImage)() || y.last("node ") != "" {
		t.Errorf("without its images: %q", y.noted())
	}
	close(comes)
	y.eventually("the API serves", func() bool { return y.last("control node-1 up") != "" })
	y.eventually("the node is there", func() bool { return y.last("node node-1 up") != "" })
	for _, image := range []string{constants.KubernetesAPIServerImage, constants.KubernetesControllerManagerImage, constants.KubernetesSchedulerImage} {
		if !pulled(image)() {
			t.Errorf("%s is not pulled", image)
		}
	}
	manifests := strings.Join(y.manifests(1), "\n")
	for _, image := range []string{FlannelImage, constants.KubeProxyImage + ":", constants.CoreDNSImage + ":" + constants.DefaultCoreDNSVersion} {
		if !strings.Contains(manifests, `"`+image) {
			t.Errorf("Talos brings no %s", image)
		}
	}
}

// The Service of the cluster's DNS comes with CoreDNS, at the address that pods are told, and neither where the configuration disables it.
func TestTheServiceOfTheDNSIsBroughtWithCoreDNS(t *testing.T) {
	y := newYard(t, 0)
	brought := func(patch string) string {
		t.Helper()
		loaded, err := configpatcher.LoadPatch([]byte(patch))
		if err != nil {
			t.Fatal(err)
		}
		patched, err := configpatcher.Apply(configpatcher.WithBytes(y.config(1, machinetype.TypeControlPlane)), []configpatcher.Patch{loaded})
		if err != nil {
			t.Fatal(err)
		}
		data, err := patched.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		parsed, err := parse(data)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Join(parsed.manifests(), "\n")
	}
	if text := brought("cluster: {network: {serviceSubnets: [10.55.0.0/16]}}"); !strings.Contains(text, "kind: Service\n") || !strings.Contains(text, `clusterIP: "10.55.0.10"`) {
		t.Errorf("with CoreDNS: %s", text)
	}
	if text := brought("cluster: {coreDNS: {disabled: true}}"); strings.Contains(text, "kube-dns") || strings.Contains(text, "kind: Service\n") {
		t.Errorf("without CoreDNS: %s", text)
	}
}

// manifests are those that a machine's configuration has Talos apply.
func (y *yard) manifests(i int) []string {
	y.fleet.mu.Lock()
	defer y.fleet.mu.Unlock()
	return y.fleet.machines[i].conf.manifests()
}
