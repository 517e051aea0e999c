package flux

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tazlab.net/castle/ci/cluster/kube"
)

// Suspended tells of an object of Flux that nothing is done with.
func Suspended(object *unstructured.Unstructured) bool {
	suspended, _, _ := unstructured.NestedBool(object.Object, "spec", "suspend")
	return suspended
}

// Ready tests an object of Flux, as kube.Ready does, and says how one goes on that is suspended.
func Ready(object *unstructured.Unstructured) (string, bool) {
	if Suspended(object) {
		return "suspended; flux resume lets it go on", false
	}
	return kube.Ready(object)
}

// SourceAt tests a GitRepository: it is ready, with the artifact of a revision; an empty one stands for any.
func SourceAt(revision string) kube.Test {
	return func(source *unstructured.Unstructured) (string, bool) {
		seen, ok := Ready(source)
		if !ok {
			return seen, false
		}
		at := Revision(source)
		switch {
		case at == "":
			return "has no artifact yet", false
		case revision != "" && !SameCommit(at, revision):
			return fmt.Sprintf("at %s, not yet at %s", at, revision), false
		}
		return "at " + at, true
	}
}

// Revision is the revision of a source's artifact, "main@sha1:<commit>".
func Revision(source *unstructured.Unstructured) string {
	revision, _, _ := unstructured.NestedString(source.Object, "status", "artifact", "revision")
	return revision
}

// SameCommit compares a revision of Flux, "main@sha1:<commit>", with another one or with a commit.
func SameCommit(revision, wanted string) bool {
	return revision == wanted || strings.HasSuffix(revision, ":"+wanted)
}

// AppliedAt tests a Kustomization: it is ready, and what it applied is the revision.
func AppliedAt(revision string) kube.Test {
	return func(kustomization *unstructured.Unstructured) (string, bool) {
		seen, ok := Ready(kustomization)
		applied, _, _ := unstructured.NestedString(kustomization.Object, "status", "lastAppliedRevision")
		if ok && applied != revision {
			return fmt.Sprintf("ready at %s", applied), false
		}
		return seen, ok
	}
}

// SourceOf is the GitRepository that a Kustomization takes from; zero for a source of another kind.
func SourceOf(kustomization *unstructured.Unstructured) kube.Object {
	ref, _, _ := unstructured.NestedStringMap(kustomization.Object, "spec", "sourceRef")
	if ref["kind"] != "GitRepository" {
		return kube.Object{}
	}
	if ref["namespace"] == "" {
		ref["namespace"] = kustomization.GetNamespace()
	}
	return kube.Object{Namespace: ref["namespace"], Name: ref["name"]}
}
