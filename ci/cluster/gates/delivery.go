package gates

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tazlab.net/castle/ci/cluster/flux"
	"tazlab.net/castle/ci/cluster/kube"
)

// delivered waits until a source is at the revision, empty for any, and every Kustomization that takes from it is ready
// at the very revision of the source. root is one that must be there; those that it creates are waited for too, because
// they exist when it is ready. Suspended ones are left out, except root.
func delivered(client *kube.Client, source, root kube.Object, revision string) Waiter {
	targets := []kube.Target{
		{Resource: flux.GitRepositories, Namespace: source.Namespace, Name: source.Name},
		{Resource: flux.Kustomizations},
	}
	return kube.WaitFunc(func(ctx context.Context, report func(string)) error {
		return client.Follow(ctx, targets, func(view kube.View) (string, bool, error) {
			if len(view[0]) == 0 {
				return fmt.Sprintf("GitRepository %s does not exist yet", source.Name), false, nil
			}
			if seen, ok := flux.SourceAt(revision)(view[0][0]); !ok {
				return fmt.Sprintf("GitRepository %s: %s", source.Name, seen), false, nil
			}
			seen, ok := allApplied(view[1], source, root, flux.Revision(view[0][0]))
			return seen, ok, nil
		}, report)
	})
}

func allApplied(list []*unstructured.Unstructured, source, root kube.Object, revision string) (string, bool) {
	var all int
	var open []string
	var rootSeen bool
	for _, kustomization := range list {
		if flux.SourceOf(kustomization) != source {
			continue
		}
		isRoot := kube.ObjectOf(kustomization) == root
		rootSeen = rootSeen || isRoot
		if flux.Suspended(kustomization) && !isRoot {
			continue
		}
		all++
		if seen, ok := flux.AppliedAt(revision)(kustomization); !ok {
			open = append(open, named(kustomization, revision)+": "+seen)
		}
	}
	if !rootSeen {
		return fmt.Sprintf("Kustomization %s does not exist yet", root.Name), false
	}
	return kube.Tally(all-len(open), all, open) + " at " + revision, len(open) == 0
}

// named is a Kustomization's name, with the revision that it was last tried at where that is not the source's.
func named(kustomization *unstructured.Unstructured, revision string) string {
	tried, _, _ := unstructured.NestedString(kustomization.Object, "status", "lastAttemptedRevision")
	if tried == "" || tried == revision {
		return kustomization.GetName()
	}
	return kustomization.GetName() + " (tried " + tried + ")"
}
