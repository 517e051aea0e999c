package gates

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// delivered waits until a source is at the revision, empty for any, and every Kustomization that takes from it is ready
// at the very revision of the source. root is one that must be there; those that it creates are waited for too, because
// they exist when it is ready. Suspended ones are left out, except root.
func delivered(client *Kube, source, root Object, revision string) Waiter {
	targets := []Target{
		{Resource: gitRepositories, Namespace: source.Namespace, Name: source.Name},
		{Resource: kustomizations},
	}
	return waiterFunc(func(ctx context.Context, report func(string)) error {
		return client.Follow(ctx, targets, func(view View) (string, bool, error) {
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
