package flux_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"tazlab.net/castle/ci/cluster/flux"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/test/kubetest"
)

const controller = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: kustomize-controller, namespace: flux-system}, spec: {selector: {matchLabels: {app: a}},
	template: {metadata: {labels: {app: a}}, spec: {containers: [{name: manager, image: "a:1", args: [ARGS]}]}}}}`

var (
	accounts  = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	alerts    = schema.GroupVersionResource{Group: "notification.toolkit.fluxcd.io", Version: "v1beta3", Resource: "alerts"}
	receivers = schema.GroupVersionResource{Group: "notification.toolkit.fluxcd.io", Version: "v1", Resource: "receivers"}
)

func TestWhatFluxCouldNotApplyAnyMoreIsNamedWithItsFix(t *testing.T) {
	server := kubetest.Start(t)
	client, err := kube.FromEnv(server.Getenv)
	if err != nil {
		t.Fatal(err)
	}
	look := func() []string {
		t.Helper()
		problems, err := flux.AgainstLockdown(t.Context(), client)
		if err != nil {
			t.Fatal(err)
		}
		return problems
	}
	if got := look(); got != nil {
		t.Errorf("a cluster without Flux: %q", got)
	}
	server.Put(kube.Deployments, strings.Replace(controller, "ARGS", "--watch-all-namespaces", 1))
	if got := look(); got != nil {
		t.Errorf("no kind of Flux: %q", got)
	}
	server.InstallCRDs("flux-kustomize", "kustomizations")
	server.InstallCRDs("flux-helm", "helmreleases")
	server.InstallCRDs("flux-notification", "alerts", "receivers")
	kustomization := func(namespace, name, more string) {
		server.Put(flux.Kustomizations, `{apiVersion: kustomize.toolkit.fluxcd.io/v1, kind: Kustomization, metadata: {name: `+name+`, namespace: `+namespace+`},
			spec: {interval: 10m, path: ./apps, prune: true, `+more+`}}`)
	}
	release := func(namespace, name, more string) {
		server.Put(flux.HelmReleases, `{apiVersion: helm.toolkit.fluxcd.io/v2, kind: HelmRelease, metadata: {name: `+name+`, namespace: `+namespace+`},
			spec: {interval: 10m, `+more+`}}`)
	}
	const own, theirs = "sourceRef: {kind: GitRepository, name: flux-system}", "sourceRef: {kind: GitRepository, name: flux-system, namespace: flux-system}"
	const chart = "chart: {spec: {chart: a, sourceRef: {kind: HelmRepository, name: a"

	// What the sandbox and every repository in flux-system have goes on.
	kustomization("flux-system", "apps", own)
	kustomization("flux-system", "named", theirs)
	release("flux-system", "platform", chart+"}}}, targetNamespace: team")
	kustomization("team", "with-account", own+", serviceAccountName: reconciler")
	release("team", "with-account", chart+"}}}, serviceAccountName: reconciler")
	if got := look(); got != nil {
		t.Errorf("what goes on is named: %q", got)
	}

	kustomization("team", "crossing", theirs+", serviceAccountName: reconciler")
	kustomization("team", "without-account", own)
	kustomization("flux-system", "remote", own+", kubeConfig: {secretRef: {name: other}}")
	release("team", "crossing", chart+", namespace: flux-system}}}, serviceAccountName: reconciler")
	release("team", "by-ref", "chartRef: {kind: OCIRepository, name: a, namespace: flux-system}, serviceAccountName: reconciler")
	release("team", "without-account", chart+"}}}")
	server.Put(accounts, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: flux-reconciler, namespace: half}}")
	release("half", "without-rights", chart+"}}}")
	server.Put(alerts, `{apiVersion: notification.toolkit.fluxcd.io/v1beta3, kind: Alert, metadata: {name: all, namespace: flux-system},
		spec: {providerRef: {name: a}, eventSources: [{kind: HelmRelease, name: "*", namespace: team}, {kind: Kustomization, name: "*"}]}}`)
	server.Put(receivers, `{apiVersion: notification.toolkit.fluxcd.io/v1, kind: Receiver, metadata: {name: git, namespace: flux-system},
		spec: {type: generic, secretRef: {name: a}, resources: [{kind: GitRepository, name: a, namespace: team}]}}`)
	got := look()
	for _, want := range []string{
		"Alert flux-system/all names objects in team in spec.eventSources",
		"HelmRelease half/without-rights would be installed as the service account flux-reconciler of its namespace, which may not write Secrets in half",
		"HelmRelease team/by-ref takes from OCIRepository flux-system/a, in another namespace: give it a source of that kind in team",
		"HelmRelease team/crossing takes from HelmRepository flux-system/a, in another namespace",
		"HelmRelease team/without-account names no service account: write spec.serviceAccountName",
		"Kustomization flux-system/remote applies to another cluster",
		"Kustomization team/crossing takes from GitRepository flux-system/flux-system, in another namespace",
		"Kustomization team/without-account names no service account: write spec.serviceAccountName",
		"Receiver flux-system/git names objects in team in spec.resources",
	} {
		if !slices.ContainsFunc(got, func(line string) bool { return strings.HasPrefix(line, want) }) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	if len(got) != 9 {
		t.Errorf("%d are named: %q", len(got), got)
	}
	if err := flux.LockdownRefused(got); err == nil || !strings.Contains(err.Error(), "tenancy: single") {
		t.Errorf("the refusal does not say how to go on as before: %v", err)
	}

	// Where the lockdown is on, nothing is new.
	server.Put(kube.Deployments, strings.Replace(controller, "ARGS", "--no-cross-namespace-refs=true", 1))
	if got := look(); got != nil {
		t.Errorf("under the lockdown: %q", got)
	}
}
