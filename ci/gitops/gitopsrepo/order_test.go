package gitopsrepo

import (
	"maps"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
)

// kindsOf are the Kustomizations whose charts bring the kinds of a group. Flux's kinds and those of External Secrets are there
// before the repository.
var kindsOf = map[string]string{
	"cert-manager.io": "cert-manager", "notification.toolkit.fluxcd.io": "",
	"source.toolkit.fluxcd.io": "", "helm.toolkit.fluxcd.io": "", "external-secrets.io": "",
}

func TestWhatComesFirstIsThere(t *testing.T) {
	everyPair(t, func(t *testing.T, request Request) {
		b := buildAll(t, rendered(t, request))
		for name := range b.kustomizations {
			before := b.before(name)
			if before[name] {
				t.Errorf("Kustomization %s waits for itself", name)
			}
			if before["monitoring"] {
				t.Errorf("Kustomization %s waits for monitoring", name)
			}
			for _, object := range b.applied[name] {
				group := object.GroupVersionKind().Group
				brings, known := kindsOf[group]
				switch {
				case scheme.Scheme.Recognizes(object.GroupVersionKind()):
				case !known:
					t.Errorf("%s %s: who brings the kinds of %s?", object.GetKind(), object.GetName(), group)
				case brings == "":
				case brings == name || !before[brings]:
					t.Errorf("Kustomization %s has a %s, and does not wait for %s", name, object.GetKind(), brings)
				default:
					if wait, _, _ := unstructured.NestedBool(b.kustomizations[brings].Object, "spec", "wait"); !wait {
						t.Errorf("Kustomization %s waits for %s, which is ready before its kinds are", name, brings)
					}
				}
				namespace := object.GetNamespace()
				if target := field(object, "spec", "targetNamespace"); target != "" {
					namespace = target
				}
				if namespace != "" && namespace != "flux-system" && name != "namespaces" && (!before["namespaces"] || b.find("Namespace", "", namespace) == nil) {
					t.Errorf("Kustomization %s puts %s %s into %s, which may not be there", name, object.GetKind(), object.GetName(), namespace)
				}
			}
		}
		if monitoring := b.kustomizations["monitoring"]; monitoring != nil {
			if wait, _, _ := unstructured.NestedBool(monitoring.Object, "spec", "wait"); wait {
				t.Error("monitoring is waited for")
			}
		}
	})
}

func TestNoNamespaceGoesByItself(t *testing.T) {
	everyPair(t, func(t *testing.T, request Request) {
		for _, namespace := range buildAll(t, rendered(t, request)).ofKind("Namespace") {
			if namespace.GetAnnotations()["kustomize.toolkit.fluxcd.io/prune"] != "disabled" {
				t.Errorf("namespace %s goes with its part, and the volumes in it", namespace.GetName())
			}
		}
	})
}

func TestAnIngressLeadsToAPod(t *testing.T) {
	everyPair(t, func(t *testing.T, request Request) {
		b := buildAll(t, rendered(t, request))
		on := selected(request.With, request.Without)
		if ingresses := b.ofKind("Ingress"); (len(ingresses) > 0) != (on[Traefik] && (on[Blog] || on[Notifications])) {
			t.Errorf("there are %d Ingresses", len(ingresses))
		}
		for _, ingress := range b.ofKind("Ingress") {
			if issuer := ingress.GetAnnotations()["cert-manager.io/cluster-issuer"]; issuer != "" && b.find("ClusterIssuer", "", issuer) == nil {
				t.Errorf("there is no ClusterIssuer %s", issuer)
			}
			backend := list(list(ingress.Object, "spec", "rules")[0], "http", "paths")[0]
			service, _, _ := unstructured.NestedString(backend, "backend", "service", "name")
			port, _, _ := unstructured.NestedString(backend, "backend", "service", "port", "name")
			if ingress.GetNamespace() == "flux-system" { // Flux came with the cluster
				if service != "webhook-receiver" || port != "http" {
					t.Errorf("Ingress %s leads to the port %s of %s", ingress.GetName(), port, service)
				}
				continue
			}
			target := b.targetOf(ingress.GetNamespace(), service, port)
			deployment := b.podsOf(ingress.GetNamespace(), service)
			container := list(deployment.Object, "spec", "template", "spec", "containers")[0]
			ports := list(container, "ports")
			if ports[0]["name"] != target {
				t.Errorf("Service %s leads to the port %s, and the container has %v", service, target, ports)
			}
			for _, probe := range []string{"startupProbe", "readinessProbe", "livenessProbe"} {
				if got, _, _ := unstructured.NestedFieldNoCopy(container, probe, "httpGet", "port"); got != target {
					t.Errorf("%s asks the port %v", probe, got)
				}
			}
		}
	})
}

// targetOf is the container's port behind a Service's.
func (b *built) targetOf(namespace, service, port string) string {
	found := b.find("Service", namespace, service)
	if found == nil {
		b.t.Fatalf("there is no Service %s", service)
	}
	for _, p := range list(found.Object, "spec", "ports") {
		if p["name"] == port {
			return p["targetPort"].(string)
		}
	}
	b.t.Fatalf("Service %s has no port %s", service, port)
	return ""
}

// podsOf is the Deployment whose pods a Service selects.
func (b *built) podsOf(namespace, service string) *unstructured.Unstructured {
	selector, _, _ := unstructured.NestedStringMap(b.find("Service", namespace, service).Object, "spec", "selector")
	for _, deployment := range b.ofKind("Deployment") {
		labels, _, _ := unstructured.NestedStringMap(deployment.Object, "spec", "template", "metadata", "labels")
		if deployment.GetNamespace() == namespace && len(selector) > 0 && maps.Equal(selector, labels) {
			return deployment
		}
	}
	b.t.Fatalf("Service %s selects no pods", service)
	return nil
}
