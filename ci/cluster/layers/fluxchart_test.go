package layers_test

import (
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"tazlab.net/castle/ci/cluster/flux"
	"tazlab.net/castle/ci/test/helmtest"
	"tazlab.net/castle/ci/test/kubetest"
)

// fluxChart is what the chart of Flux installs, with the lockdown or without.
func fluxChart(t *testing.T, multiTenancy bool) []*unstructured.Unstructured {
	t.Helper()
	return helmtest.Objects(t, helmtest.Release{Chart: filepath.Join(terragrunt, "charts", "flux"), Name: "flux", Namespace: flux.Namespace,
		Values: map[string]any{"multiTenancy": multiTenancy}})
}

func find(t *testing.T, objects []*unstructured.Unstructured, kind, name string) *unstructured.Unstructured {
	t.Helper()
	at := slices.IndexFunc(objects, func(object *unstructured.Unstructured) bool {
		return object.GetKind() == kind && object.GetName() == name
	})
	if at < 0 {
		t.Fatalf("there is no %s %s", kind, name)
	}
	return objects[at]
}

// The flags of Flux's own page on multi-tenancy, for the controllers that have them (main.go of each).
func TestFluxRunsWithTheMultiTenancyLockdown(t *testing.T) {
	const crossing, remote, account = "--no-cross-namespace-refs=true", "--no-remote-bases=true", "--default-service-account=" + flux.Reconciler
	for controller, want := range map[string][]string{
		"kustomize-controller": {crossing, remote, account}, "helm-controller": {crossing, account}, "notification-controller": {crossing}, "source-controller": nil,
	} {
		for _, multiTenancy := range []bool{true, false} {
			containers, _, _ := unstructured.NestedSlice(find(t, fluxChart(t, multiTenancy), "Deployment", controller).Object, "spec", "template", "spec", "containers")
			arguments, _, _ := unstructured.NestedStringSlice(containers[0].(map[string]any), "args")
			got := slices.DeleteFunc(arguments, func(argument string) bool {
				return !strings.HasPrefix(argument, "--no-") && !strings.HasPrefix(argument, "--default-service-account")
			})
			if !multiTenancy {
				want = nil
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s, multi-tenancy %v: %v, want %v", controller, multiTenancy, got, want)
			}
		}
	}
}

func TestWhoIsClusterAdminByTheChartOfFlux(t *testing.T) {
	for multiTenancy, want := range map[bool]string{true: "flux-reconciler flux-reconciler", false: "helm-controller kustomize-controller flux-reconciler"} {
		var bound []string
		for _, object := range fluxChart(t, multiTenancy) {
			if role, _, _ := unstructured.NestedString(object.Object, "roleRef", "name"); role != "cluster-admin" {
				continue
			}
			subjects, _, _ := unstructured.NestedSlice(object.Object, "subjects")
			for _, subject := range subjects {
				bound = append(bound, subject.(map[string]any)["name"].(string))
			}
		}
		slices.Sort(bound)
		wanted := strings.Fields(want)
		slices.Sort(wanted)
		if !slices.Equal(bound, wanted) {
			t.Errorf("multi-tenancy %v: %v, want %v", multiTenancy, bound, wanted)
		}
	}
}

// rbacOf puts the chart's accounts, roles and bindings into a cluster, and adds up roles as the controller for that does
// (pkg/controller/clusterroleaggregation of Kubernetes), which is not there.
func rbacOf(t *testing.T, server *kubetest.Server) {
	t.Helper()
	for _, object := range fluxChart(t, true) {
		if group := object.GroupVersionKind().Group; group == "rbac.authorization.k8s.io" || object.GetKind() == "ServiceAccount" {
			resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
			text, err := object.MarshalJSON()
			if err != nil {
				t.Fatal(err)
			}
			server.Put(resource, string(text))
		}
	}
	client := server.Client().Resource(roles)
	for _, name := range []string{"view", "edit", "admin"} { // each is added to the next
		added, err := client.List(t.Context(), metav1.ListOptions{LabelSelector: "rbac.authorization.k8s.io/aggregate-to-" + name + "=true"})
		if err != nil {
			t.Fatal(err)
		}
		var rules []any
		for _, role := range added.Items {
			its, _, _ := unstructured.NestedSlice(role.Object, "rules")
			rules = append(rules, its...)
		}
		role, err := client.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		role.Object["rules"] = rules
		if _, err := client.Update(t.Context(), role, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}

// as is a client of a user's; impersonated, where it is not empty, is whom the user acts as.
func as(t *testing.T, server *kubetest.Server, user, impersonated string, groups ...string) dynamic.Interface {
	t.Helper()
	cert, key := server.Certificate(user, groups...)
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.Host, QPS: -1, WarningHandler: rest.NoWarnings{},
		TLSClientConfig: rest.TLSClientConfig{CAData: server.CA(), CertData: cert, KeyData: key}, Impersonate: rest.ImpersonationConfig{UserName: impersonated}})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

const flux2 = ".toolkit.fluxcd.io"

var fluxKinds = []schema.GroupVersionResource{
	flux.Kustomizations, flux.HelmReleases, flux.GitRepositories,
	{Group: "source" + flux2, Version: "v1", Resource: "helmrepositories"}, {Group: "source" + flux2, Version: "v1", Resource: "ocirepositories"},
	{Group: "source" + flux2, Version: "v1", Resource: "helmcharts"}, {Group: "source" + flux2, Version: "v1", Resource: "buckets"},
	{Group: "notification" + flux2, Version: "v1", Resource: "receivers"}, {Group: "notification" + flux2, Version: "v1beta3", Resource: "alerts"},
	{Group: "notification" + flux2, Version: "v1beta3", Resource: "providers"},
}

var configMaps = schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}

func TestANamespacesEditorGivesFluxNothingToDo(t *testing.T) {
	server := kubetest.Start(t)
	rbacOf(t, server)
	server.InstallCRDs("flux-source", "_")
	server.InstallCRDs("flux-kustomize", "_")
	server.InstallCRDs("flux-helm", "_")
	server.InstallCRDs("flux-notification", "_")
	for _, role := range []string{"view", "edit", "admin"} {
		server.Put(schema.GroupVersionResource{Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "rolebindings"},
			`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, metadata: {name: `+role+`, namespace: team},
			roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: `+role+`}, subjects: [{kind: User, apiGroup: rbac.authorization.k8s.io, name: who-may-`+role+`}]}`)
	}
	try := func(role string, resource schema.GroupVersionResource, kind string) error {
		object := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": resource.GroupVersion().String(), "kind": kind, "metadata": map[string]any{"name": role, "namespace": "team"}}}
		_, err := as(t, server, "who-may-"+role, "").Resource(resource).Namespace("team").Create(t.Context(), object, metav1.CreateOptions{})
		return err
	}
	for role, reads := range map[string]bool{"view": false, "edit": true, "admin": true} {
		if err := try(role, configMaps, "ConfigMap"); (err == nil) != reads { // who may read Secrets may also write
			t.Fatalf("%s: a ConfigMap: %v", role, err)
		}
		for _, resource := range fluxKinds {
			if err := try(role, resource, "Any"); !apierrors.IsForbidden(err) {
				t.Errorf("%s may create %s: %v", role, resource.Resource, err)
			}
			_, err := as(t, server, "who-may-"+role, "").Resource(resource).Namespace("team").List(t.Context(), metav1.ListOptions{})
			if (err == nil) != reads {
				t.Errorf("%s reads %s: %v", role, resource.Resource, err)
			}
		}
	}
}

// What Flux does, it does as the service account that an object names, or that stands in for one; never as the controller itself.
func TestTheControllersHaveNoRightsButToImpersonate(t *testing.T) {
	server := kubetest.Start(t)
	rbacOf(t, server)
	create := func(controller, impersonated, name string) error {
		object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": name, "namespace": "default"}}}
		client := as(t, server, "system:serviceaccount:flux-system:"+controller, impersonated, "system:serviceaccounts", "system:serviceaccounts:flux-system")
		_, err := client.Resource(configMaps).Namespace("default").Create(t.Context(), object, metav1.CreateOptions{})
		return err
	}
	for _, controller := range []string{"kustomize-controller", "helm-controller"} {
		if err := create(controller, "", "own-"+controller); !apierrors.IsForbidden(err) {
			t.Errorf("%s writes as itself: %v", controller, err)
		}
		if err := create(controller, "system:serviceaccount:flux-system:"+flux.Reconciler, controller); err != nil {
			t.Errorf("%s cannot write as %s: %v", controller, flux.Reconciler, err)
		}
		// An account of another namespace that bears the name has nothing of it.
		if err := create(controller, "system:serviceaccount:team:"+flux.Reconciler, "of-team"); !apierrors.IsForbidden(err) {
			t.Errorf("%s writes as an account of another namespace: %v", controller, err)
		}
	}
	for _, controller := range []string{"source-controller", "notification-controller"} {
		if err := create(controller, "system:serviceaccount:flux-system:"+flux.Reconciler, controller); !apierrors.IsForbidden(err) {
			t.Errorf("%s, which applies nothing, writes as %s: %v", controller, flux.Reconciler, err)
		}
	}
}

// As fluxcd/flux2 has them in manifests/policies.
func TestOnlyWhatServesTheOutsideIsReachedFromThere(t *testing.T) {
	objects := fluxChart(t, true)
	for name, want := range map[string][2]any{
		"allow-egress":   {map[string]any{}, []any{map[string]any{"from": []any{map[string]any{"podSelector": map[string]any{}}}}}},
		"allow-webhooks": {map[string]any{"matchLabels": map[string]any{"app": "notification-controller"}}, []any{map[string]any{"from": []any{map[string]any{"namespaceSelector": map[string]any{}}}}}},
	} {
		spec := find(t, objects, "NetworkPolicy", name).Object["spec"].(map[string]any)
		if got := [2]any{spec["podSelector"], spec["ingress"]}; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	find(t, objects, "NetworkPolicy", "allow-scraping")
}
