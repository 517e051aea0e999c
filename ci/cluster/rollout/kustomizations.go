package rollout

import (
	"cmp"
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tazlab.net/castle/ci/cluster/flux"
	"tazlab.net/castle/ci/cluster/kube"
)

// inPlaceAt tests a Kustomization as flux.AppliedAt does, and passes it also where it has applied the revision and only the
// health of something keeps it from being ready: the blog's own is looked at by itself.
func inPlaceAt(revision string) kube.Test {
	return func(kustomization *unstructured.Unstructured) (string, bool) {
		attempted, _, _ := unstructured.NestedString(kustomization.Object, "status", "lastAttemptedRevision")
		if attempted == revision && kube.Reason(kustomization, "Ready") == "HealthCheckFailed" {
			return "applied " + revision, true
		}
		return flux.AppliedAt(revision)(kustomization)
	}
}

// nudge asks the Kustomizations to go on that wait for others which are ready: Flux would look again only after half a
// minute. Each is asked once for a revision; a request that fails is tried with the next change.
func (w *wait) nudge(ctx context.Context, list []*unstructured.Unstructured, at string) {
	for _, kustomization := range list {
		object := kube.ObjectOf(kustomization)
		key := object.String() + " " + at
		if w.nudged[key] || flux.SourceOf(kustomization) != w.Source || kube.Reason(kustomization, "Ready") != "DependencyNotReady" || !dependenciesMet(kustomization, list, at) {
			continue
		}
		bounded, cancel := context.WithTimeout(ctx, kube.RequestTimeout)
		err := annotate(bounded, w.client, flux.Kustomizations, object, newToken())
		cancel()
		w.nudged[key] = err == nil
	}
}

// dependenciesMet says whether all that a Kustomization depends on is ready, and at the revision where it takes from the
// same source.
func dependenciesMet(kustomization *unstructured.Unstructured, list []*unstructured.Unstructured, revision string) bool {
	dependencies, _, _ := unstructured.NestedSlice(kustomization.Object, "spec", "dependsOn")
	for _, dependency := range dependencies {
		wanted, _ := dependency.(map[string]any)
		name, _ := wanted["name"].(string)
		namespace, _ := wanted["namespace"].(string)
		object := find(list, kube.Object{Namespace: cmp.Or(namespace, kustomization.GetNamespace()), Name: name})
		if object == nil {
			return false
		}
		met := kube.Test(flux.Ready)
		if flux.SourceOf(object) == flux.SourceOf(kustomization) {
			met = flux.AppliedAt(revision)
		}
		if _, ok := met(object); !ok {
			return false
		}
	}
	return true
}

// The labels by which Flux marks what a Kustomization applied.
const (
	ownerName      = "kustomize.toolkit.fluxcd.io/name"
	ownerNamespace = "kustomize.toolkit.fluxcd.io/namespace"
)

// ownerOf finds the Kustomization that applied an object, nil when there is none.
func ownerOf(object *unstructured.Unstructured, list []*unstructured.Unstructured) *unstructured.Unstructured {
	labels := object.GetLabels()
	return find(list, kube.Object{Namespace: labels[ownerNamespace], Name: labels[ownerName]})
}

func find(list []*unstructured.Unstructured, wanted kube.Object) *unstructured.Unstructured {
	for _, object := range list {
		if kube.ObjectOf(object) == wanted {
			return object
		}
	}
	return nil
}
