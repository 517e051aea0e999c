package layers_test

import (
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tazlab.net/castle/ci/cluster/flux"
	"tazlab.net/castle/ci/cluster/kube"
	"tazlab.net/castle/ci/test/kubetest"
)

var (
	serviceAccounts = schema.GroupVersionResource{Version: "v1", Resource: "serviceaccounts"}
	bindings        = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterrolebindings"}
	policies        = schema.GroupVersionResource{Group: "networking.k8s.io", Version: "v1", Resource: "networkpolicies"}
	roles           = schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles"}
)

// theirs are the labels and the place of what flux bootstrap applies (fluxcd/flux2 v2.9.5, pkg/manifestgen/install/templates.go).
const theirs = "namespace: flux-system, labels: {app.kubernetes.io/part-of: flux, app.kubernetes.io/instance: flux-system, app.kubernetes.io/version: v2.9.4}"

// bootstrapped puts a Flux into the cluster as flux bootstrap leaves it (fluxcd/flux2 v2.9.5, manifests/): nothing of it is Helm's.
func bootstrapped(t *testing.T, server *kubetest.Server) {
	t.Helper()
	server.InstallCRDs("flux-source", "gitrepositories")
	server.InstallCRDs("flux-kustomize", "kustomizations")
	server.Put(kube.Namespaces, "{apiVersion: v1, kind: Namespace, metadata: {name: flux-system}}")
	server.Put(serviceAccounts, "{apiVersion: v1, kind: ServiceAccount, metadata: {name: source-controller, "+theirs+"}}")
	server.Put(kube.Services, "{apiVersion: v1, kind: Service, metadata: {name: source-controller, "+theirs+`},
		spec: {selector: {app: source-controller}, ports: [{name: http, port: 80, protocol: TCP, targetPort: http}]}}`)
	server.Put(bindings, `{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: cluster-reconciler-flux-system},
		roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: cluster-admin},
		subjects: [{kind: ServiceAccount, name: kustomize-controller, namespace: flux-system}]}`)
	server.Put(kube.Deployments, "{apiVersion: apps/v1, kind: Deployment, metadata: {name: source-controller, "+theirs+`},
		spec: {selector: {matchLabels: {app: source-controller}}, template: {metadata: {labels: {app: source-controller}},
		spec: {containers: [{name: manager, image: "ghcr.io/fluxcd/source-controller:v1.9.4", args: [--watch-all-namespaces]}]}}}}`)
	server.Put(flux.GitRepositories, `{apiVersion: source.toolkit.fluxcd.io/v1, kind: GitRepository, metadata: {name: flux-system, namespace: flux-system},
		spec: {interval: 1m0s, url: "ssh://git@git.example.org/old", ref: {branch: old}, secretRef: {name: flux-system}}}`)
}

// fluxCommandsFindIt: what the commands of flux look for (fluxcd/flux2 v2.9.5, cmd/flux/check.go and cluster_info.go), and what lets a
// repository of flux bootstrap take it over.
func fluxCommandsFindIt(t *testing.T, server *kubetest.Server) {
	t.Helper()
	client := server.Client()
	list := func(resource schema.GroupVersionResource, selector string) (names []string, items []unstructured.Unstructured) {
		found, err := client.Resource(resource).List(t.Context(), metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			t.Fatal(err)
		}
		for _, object := range found.Items {
			names = append(names, object.GetName())
		}
		return names, found.Items
	}
	const instance = "app.kubernetes.io/part-of=flux,app.kubernetes.io/instance=flux-system,app.kubernetes.io/version=v2.9.5"
	for _, test := range []struct {
		resource schema.GroupVersionResource
		want     []string
	}{
		{kube.Deployments, []string{"helm-controller", "kustomize-controller", "notification-controller", "source-controller"}},
		{serviceAccounts, []string{"flux-reconciler", "helm-controller", "kustomize-controller", "notification-controller", "source-controller"}},
		{kube.Services, []string{"notification-controller", "source-controller", "webhook-receiver"}},
		{roles, []string{"crd-controller-flux-system", "flux-edit-flux-system", "flux-impersonator-flux-system", "flux-view-flux-system"}},
		{bindings, []string{"cluster-reconciler-flux-system", "crd-controller-flux-system", "flux-impersonator-flux-system", "flux-reconciler-flux-system"}},
		{policies, []string{"allow-egress", "allow-scraping", "allow-webhooks"}},
		{kube.Namespaces, []string{"flux-system"}},
	} {
		names, items := list(test.resource, instance)
		if !slices.Equal(names, test.want) {
			t.Errorf("%s of Flux: %v, want %v", test.resource.Resource, names, test.want)
		}
		staysWhenFluxPrunes(t, items)
	}

	// Two were there before, and Helm leaves definitions that are there as they are.
	definitions, items := list(kube.CRDs, instance)
	for _, name := range []string{"alerts.notification.toolkit.fluxcd.io", "helmreleases.helm.toolkit.fluxcd.io", "helmrepositories.source.toolkit.fluxcd.io"} {
		if !slices.Contains(definitions, name) {
			t.Errorf("flux does not find the definition %s among %v", name, definitions)
		}
	}
	staysWhenFluxPrunes(t, items)
	for _, object := range items {
		if by := object.GetLabels()["app.kubernetes.io/managed-by"]; by != "" {
			t.Errorf("flux bootstrap would ask whether it may take %s from %s", object.GetName(), by)
		}
	}

	for _, resource := range []schema.GroupVersionResource{flux.GitRepositories, flux.Kustomizations} {
		names, items := list(resource, "")
		if !slices.Equal(names, []string{"flux-system"}) {
			t.Errorf("%s: %v", resource.Resource, names)
		}
		staysWhenFluxPrunes(t, items)
	}
	// What flux bootstrap had bound to the controllers is theirs no more.
	_, bound := list(bindings, "")
	for _, binding := range bound {
		subjects, _, _ := unstructured.NestedSlice(binding.Object, "subjects")
		role, _, _ := unstructured.NestedString(binding.Object, "roleRef", "name")
		for _, subject := range subjects {
			if name := subject.(map[string]any)["name"]; role == "cluster-admin" && name == "kustomize-controller" {
				t.Errorf("%s still makes %s cluster-admin", binding.GetName(), name)
			}
		}
	}
	_, all := list(flux.GitRepositories, "")
	if branch, _, _ := unstructured.NestedString(all[0].Object, "spec", "ref", "branch"); branch == "old" {
		t.Error("the source is still what was there before")
	}
}

// staysWhenFluxPrunes: a repository of flux bootstrap has these objects, and kustomize-controller would remove them, itself among them,
// together with the Kustomization that it has them from.
func staysWhenFluxPrunes(t *testing.T, objects []unstructured.Unstructured) {
	t.Helper()
	for _, object := range objects {
		if object.GetAnnotations()["kustomize.toolkit.fluxcd.io/prune"] != "disabled" {
			t.Errorf("Flux would prune %s %s", object.GetKind(), object.GetName())
		}
	}
}
