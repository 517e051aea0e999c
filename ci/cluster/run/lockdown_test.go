package run

import (
	"strings"
	"testing"

	"tazlab.net/castle/ci/cluster/config"
	fluxapi "tazlab.net/castle/ci/cluster/flux"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/cluster/talos/machineconfig"
	"tazlab.net/castle/ci/test/kubetest"
)

// A cluster that an older castle has made, whose repository has a Kustomization that the lockdown would refuse.
func TestCreateRefusesWhatTheLockdownWouldBreak(t *testing.T) {
	server := kubetest.Start(t)
	server.InstallCRDs("flux-kustomize", "kustomizations")
	server.Put(kube.Deployments, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: kustomize-controller, namespace: flux-system},
		spec: {selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: manager, image: "a:1"}]}}}}`)
	server.Put(fluxapi.Kustomizations, `{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: web, namespace: team},
		spec: {interval: 10m, path: ./web, prune: true, sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}}}`)
	cert, key := server.Certificate("admin", "system:masters")
	access := &Access{Kube: machineconfig.Kube{Host: server.Host, CA: server.CA(), Cert: cert, Key: key}}
	cluster := &Cluster{Description: &config.Cluster{GitOps: config.GitOps{Tenancy: config.TenancyMulti}}}

	err := cluster.FitsLockdown(t.Context(), access)
	for _, want := range []string{"Kustomization team/web takes from GitRepository flux-system/flux-system", "Kustomization team/web names no service account", "tenancy: single"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is not in %v", want, err)
		}
	}
	cluster.Description.GitOps.Tenancy = config.TenancySingle
	if err := cluster.FitsLockdown(t.Context(), access); err != nil {
		t.Errorf("Flux stays as it is, and that is refused: %v", err)
	}
	cluster.Description.GitOps.Tenancy = config.TenancyMulti
	server.StopAPI()
	if err := cluster.FitsLockdown(t.Context(), access); err != nil {
		t.Errorf("an API that does not answer: %v", err)
	}
}
