package ready

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// requestedAt asks a Flux controller to reconcile an object now; it answers with the same value in lastHandledReconcileAt.
const requestedAt = "reconcile.fluxcd.io/requestedAt"

// GateRollout is the name of WaitRollout's gate in its events.
const GateRollout = "rollout"

// WaitRollout asks Flux to fetch now, and waits until the blog's Deployment runs env.Image. env.Revision is the commit of
// the GitOps repository that holds the image's tag; env.Cluster is not needed. Errors and events are as Run's.
//
// A commit that somebody pushed afterwards is as good as env.Revision, as long as it has the same image; that it has
// another one ends the wait, because no waiting brings the image back.
func WaitRollout(ctx context.Context, env Env, timeout time.Duration, events func(Event)) error {
	if env.Kube == nil || env.Revision == "" || env.Image == "" {
		return errors.New("waiting for a rollout needs a connection, a commit and an image")
	}
	fetched := make(chan struct{})
	fetch := waiterFunc(func(ctx context.Context, report func(string)) error {
		_, err := Reconcile(ctx, env.Kube, fluxSource, fluxRoot, env.Revision, report)
		if err == nil {
			close(fetched)
		}
		return err
	})
	rollOut := waiterFunc(func(ctx context.Context, report func(string)) error {
		report("Flux has not fetched the commit yet")
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-fetched:
			return env.Kube.rolledOut(env.Image).Wait(ctx, report)
		}
	})
	return run(ctx, GateRollout, []Condition{
		row{"Flux to fetch " + env.Revision, fetch, "kubectl -n flux-system describe gitrepository " + fluxSource.Name},
		row{"Deployment " + blog.Name + " with " + env.Image, rollOut, "kubectl get kustomizations -A; kubectl -n " + blog.Namespace + " get deployments,pods"},
	}, timeout, events)
}

// Reconcile asks Flux to fetch a source now, waits until it has the commit or one that was pushed after it, and then
// asks the Kustomization to apply that now. It returns the revision that the source has, "main@sha1:<commit>". What is
// missing yet is waited for until ctx ends.
func Reconcile(ctx context.Context, kube *Kube, source, kustomization Object, commit string, report func(lastSeen string)) (revision string, err error) {
	token := time.Now().UTC().Format(time.RFC3339Nano)
	if err := kube.request(ctx, gitRepositories, source, token, report); err != nil {
		return "", err
	}
	target := Target{Resource: gitRepositories, Namespace: source.Namespace, Name: source.Name}
	err = kube.Follow(ctx, []Target{target}, func(view View) (string, bool, error) {
		if len(view[0]) == 0 {
			return "", false, fmt.Errorf("GitRepository %s was removed", source.Name)
		}
		object := view[0][0]
		if suspended, _, _ := unstructured.NestedBool(object.Object, "spec", "suspend"); suspended {
			return "", false, fmt.Errorf("GitRepository %s is suspended; flux resume source git %s lets it fetch", source.Name, source.Name)
		}
		revision = artifactOf(object)
		seen, ok := sourceAt(commit)(object)
		if !ok && fetchedSince(object, token) {
			return fmt.Sprintf("at %s, which came after %s", revision, commit), true, nil
		}
		return seen, ok, nil
	}, report)
	if err != nil {
		return "", err
	}
	return revision, kube.request(ctx, kustomizations, kustomization, token, report)
}

// fetchedSince says whether a source has handled the request and is ready with what it found.
func fetchedSince(source *unstructured.Unstructured, token string) bool {
	handled, _, _ := unstructured.NestedString(source.Object, "status", "lastHandledReconcileAt")
	_, ok := sourceAt("")(source)
	return ok && handled == token
}

// request annotates an object, as soon as it exists.
func (k *Kube) request(ctx context.Context, resource schema.GroupVersionResource, object Object, token string, report func(string)) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{requestedAt: token}}})
	if err != nil {
		return err
	}
	client := k.dynamic.Resource(resource).Namespace(object.Namespace)
	question := asking{every: 250 * time.Millisecond, limit: listTimeout, atOnce: 1, grace: k.grace}
	return question.ask(ctx, func(ctx context.Context) answer {
		_, err := client.Patch(ctx, object.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "castle"})
		switch {
		case err == nil:
			return answer{ok: true}
		case apierrors.IsNotFound(err) && unknownResource(err):
			seen, fatal := k.unknownKind(ctx, resource)
			return answer{seen: seen, fatal: fatal}
		case apierrors.IsNotFound(err):
			return answer{seen: fmt.Sprintf("%s %s does not exist yet", resource.Resource, object.Name)}
		default:
			return answer{seen: brief(err).Error(), err: err}
		}
	}, report)
}

// The labels by which Flux marks what a Kustomization applied.
const (
	ownerName      = "kustomize.toolkit.fluxcd.io/name"
	ownerNamespace = "kustomize.toolkit.fluxcd.io/namespace"
)

// rolledOut waits until the blog runs an image, after the source has fetched the commit that names it. When the
// Kustomization that owns the Deployment has applied what the source has, and the Deployment names another image, the wait
// ends.
func (k *Kube) rolledOut(image string) Waiter {
	targets := []Target{
		{Resource: deployments, Namespace: blog.Namespace, Name: blog.Name},
		{Resource: gitRepositories, Namespace: fluxSource.Namespace, Name: fluxSource.Name},
		{Resource: kustomizations},
	}
	return waiterFunc(func(ctx context.Context, report func(string)) error {
		return k.Follow(ctx, targets, func(view View) (string, bool, error) {
			if len(view[0]) == 0 {
				return "does not exist yet", false, nil
			}
			deployment := view[0][0]
			if slices.Contains(imagesOf(deployment), image) {
				seen, ok := available(deployment)
				return seen, ok, nil
			}
			owner := ownerOf(deployment, view[2])
			if owner == nil || len(view[1]) == 0 {
				return "its image is still " + strings.Join(imagesOf(deployment), ", "), false, nil
			}
			at := artifactOf(view[1][0])
			if seen, applied := appliedAt(at)(owner); !applied {
				return fmt.Sprintf("Kustomization %s: %s", owner.GetName(), seen), false, nil
			}
			return k.replaced(ctx, image, at)
		}, report)
	})
}

// replaced looks at the Deployment once more before it says that another image has taken the place: the watches of
// two kinds are not in step.
func (k *Kube) replaced(ctx context.Context, image, at string) (string, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	now, err := k.dynamic.Resource(deployments).Namespace(blog.Namespace).Get(ctx, blog.Name, metav1.GetOptions{})
	if err != nil {
		return brief(err).Error(), false, nil
	}
	if slices.Contains(imagesOf(now), image) {
		seen, ok := available(now)
		return seen, ok, nil
	}
	return "", false, fmt.Errorf("the Kustomization has applied %s, where the image is %s: a later commit replaced it, or the commit changed another manifest", at, strings.Join(imagesOf(now), ", "))
}

// ownerOf finds the Kustomization that applied an object, nil when there is none.
func ownerOf(object *unstructured.Unstructured, list []*unstructured.Unstructured) *unstructured.Unstructured {
	labels := object.GetLabels()
	for _, kustomization := range list {
		if kustomization.GetName() == labels[ownerName] && kustomization.GetNamespace() == labels[ownerNamespace] {
			return kustomization
		}
	}
	return nil
}
