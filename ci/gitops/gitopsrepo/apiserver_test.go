package gitopsrepo

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tazlab.net/castle/ci/test/kubetest"
)

var namespaces = schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}

// What the kinds' own definitions refuse, and fields that they do not know, are found by nobody before Flux applies them.
func TestAnAPIServerTakesEveryObject(t *testing.T) {
	server := kubetest.Start(t)
	server.InstallCRDs("flux-source", "helmrepositories", "ocirepositories")
	server.InstallCRDs("flux-kustomize", "kustomizations")
	server.InstallCRDs("flux-helm", "helmreleases")
	server.InstallCRDs("flux-notification", "alerts", "providers", "receivers")
	server.InstallCRDs("external-secrets", "_externalsecrets")
	server.InstallCRDs("cert-manager", "clusterissuers")

	everything := full(clusterFolder(t))
	everything.With = []string{ActionsRunners}
	fromOCI := everything
	fromOCI.ChartMirror, fromOCI.GitProvider, fromOCI.BlogPort = "oci://registry.example.org/charts", "gitlab", 8080
	client := server.Client()
	server.Put(namespaces, "{apiVersion: v1, kind: Namespace, metadata: {name: flux-system}}")
	taken := map[string]int{}
	for _, request := range []Request{everything, fromOCI} {
		b := buildAll(t, rendered(t, request))
		objects := slices.Concat(b.applied["namespaces"], b.root)
		for name, applied := range b.applied {
			if name != "namespaces" {
				objects = append(objects, applied...)
			}
		}
		for _, object := range objects {
			resource, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
			// A namespace has to be there for what is in it; of the rest nothing is kept, so that another request can have it too.
			options := metav1.CreateOptions{FieldValidation: metav1.FieldValidationStrict, DryRun: []string{metav1.DryRunAll}}
			if object.GetKind() == "Namespace" {
				server.Put(namespaces, "{apiVersion: v1, kind: Namespace, metadata: {name: "+object.GetName()+"}}")
				object.SetName(object.GetName() + "-looked-at")
			}
			if _, err := client.Resource(resource).Namespace(object.GetNamespace()).Create(t.Context(), object, options); err != nil {
				t.Errorf("%s %s/%s: %v", object.GetKind(), object.GetNamespace(), object.GetName(), err)
			}
			taken[object.GetKind()]++
		}
	}
	for _, kind := range []string{"Kustomization", "HelmRelease", "HelmRepository", "OCIRepository", "ExternalSecret", "ClusterIssuer", "Alert", "Provider", "Receiver", "CronJob", "Ingress", "Deployment"} {
		if taken[kind] == 0 {
			t.Errorf("no %s was looked at", kind)
		}
	}
}
