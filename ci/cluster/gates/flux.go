package gates

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// sourceAt tests a GitRepository: it is ready, with the artifact of a revision; an empty one stands for any.
func sourceAt(revision string) Test {
	return func(source *unstructured.Unstructured) (string, bool) {
		seen, ok := conditionReady(source)
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

// delivered waits until a source is at the revision, empty for any, and every Kustomization that takes from it is ready
// at the very revision of the source. root is one that must be there; those that it creates are waited for too, because
// they exist when it is ready. Suspended ones are left out, except root.
func (k *Kube) delivered(source, root Object, revision string) Waiter {
	targets := []Target{
		{Resource: gitRepositories, Namespace: source.Namespace, Name: source.Name},
		{Resource: kustomizations},
	}
	return waiterFunc(func(ctx context.Context, report func(string)) error {
		return k.Follow(ctx, targets, func(view View) (string, bool, error) {
			if len(view[0]) == 0 {
				return fmt.Sprintf("GitRepository %s does not exist yet", source.Name), false, nil
			}
			if seen, ok := sourceAt(revision)(view[0][0]); !ok {
				return fmt.Sprintf("GitRepository %s: %s", source.Name, seen), false, nil
			}
			seen, ok := allApplied(view[1], source, root, artifactOf(view[0][0]))
			return seen, ok, nil
		}, report)
	})
}

func allApplied(list []*unstructured.Unstructured, source, root Object, revision string) (string, bool) {
	var all int
	var open []string
	var rootSeen bool
	for _, kustomization := range list {
		if sourceOf(kustomization) != source {
			continue
		}
		isRoot := Object{kustomization.GetNamespace(), kustomization.GetName()} == root
		rootSeen = rootSeen || isRoot
		if suspended, _, _ := unstructured.NestedBool(kustomization.Object, "spec", "suspend"); suspended && !isRoot {
			continue
		}
		all++
		if seen, ok := appliedAt(revision)(kustomization); !ok {
			open = append(open, kustomization.GetName()+": "+seen)
		}
	}
	if !rootSeen {
		return fmt.Sprintf("Kustomization %s does not exist yet", root.Name), false
	}
	return tally(all-len(open), all, open) + " at " + revision, len(open) == 0
}

// appliedAt tests a Kustomization: it is ready, and what it applied is the revision.
func appliedAt(revision string) Test {
	return func(kustomization *unstructured.Unstructured) (string, bool) {
		seen, ok := conditionReady(kustomization)
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
