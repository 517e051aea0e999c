package gates

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fluxReady tests an object of Flux, as ready does, and says how one goes on that is suspended.
func fluxReady(object *unstructured.Unstructured) (string, bool) {
	if suspended, _, _ := unstructured.NestedBool(object.Object, "spec", "suspend"); suspended {
		return "suspended; flux resume lets it go on", false
	}
	return ready(object)
}

// sourceAt tests a GitRepository: it is ready, with the artifact of a revision; an empty one stands for any.
func sourceAt(revision string) Test {
	return func(source *unstructured.Unstructured) (string, bool) {
		seen, ok := fluxReady(source)
		if !ok {
			return seen, false
		}
		at := artifactOf(source)
		switch {
		case at == "":
			return "has no artifact yet", false
		case revision != "" && !sameCommit(at, revision):
			return fmt.Sprintf("at %s, not yet at %s", at, revision), false
		}
		return "at " + at, true
	}
}

// artifactOf is the revision of a source's artifact, "main@sha1:<commit>".
func artifactOf(source *unstructured.Unstructured) string {
	revision, _, _ := unstructured.NestedString(source.Object, "status", "artifact", "revision")
	return revision
}

// sameCommit compares a revision of Flux, "main@sha1:<commit>", with another one or with a commit.
func sameCommit(revision, wanted string) bool {
	return revision == wanted || strings.HasSuffix(revision, ":"+wanted)
}

// appliedAt tests a Kustomization: it is ready, and what it applied is the revision.
func appliedAt(revision string) Test {
	return func(kustomization *unstructured.Unstructured) (string, bool) {
		seen, ok := fluxReady(kustomization)
		applied, _, _ := unstructured.NestedString(kustomization.Object, "status", "lastAppliedRevision")
		if ok && applied != revision {
			return fmt.Sprintf("ready at %s", applied), false
		}
		return seen, ok
	}
}

// sourceOf is the GitRepository that a Kustomization takes from; zero for a source of another kind.
func sourceOf(kustomization *unstructured.Unstructured) Object {
	ref, _, _ := unstructured.NestedStringMap(kustomization.Object, "spec", "sourceRef")
	if ref["kind"] != "GitRepository" {
		return Object{}
	}
	if ref["namespace"] == "" {
		ref["namespace"] = kustomization.GetNamespace()
	}
	return Object{Namespace: ref["namespace"], Name: ref["name"]}
}
