package rollout

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"tazlab.net/castle/ci/cluster/flux"
	"tazlab.net/castle/ci/cluster/kube"
)

// reconcile asks Flux to fetch a source now, waits until it has the commit or one that was pushed after it, and then
// asks the Kustomization to apply that now. Without a commit it waits until Flux has fetched whatever is newest. It
// returns the revision that the source has, "main@sha1:<commit>". What is missing yet is waited for until ctx ends.
func reconcile(ctx context.Context, client *kube.Client, source, kustomization kube.Object, commit string, report func(lastSeen string)) (revision string, err error) {
	token := newToken()
	if err := request(ctx, client, flux.GitRepositories, source, token, report); err != nil {
		return "", err
	}
	target := kube.Target{Resource: flux.GitRepositories, Namespace: source.Namespace, Name: source.Name}
	err = client.Follow(ctx, []kube.Target{target}, func(view kube.View) (string, bool, error) {
		if len(view[0]) == 0 {
			return "", false, fmt.Errorf("GitRepository %s was removed", source.Name)
		}
		object := view[0][0]
		if flux.Suspended(object) {
			return "", false, fmt.Errorf("GitRepository %s is suspended; flux resume source git %s lets it fetch", source.Name, source.Name)
		}
		revision = flux.Revision(object)
		seen, ok := flux.SourceAt(commit)(object)
		answered := fetchedSince(object, token)
		switch {
		case commit == "" && ok && !answered:
			return seen + ", has not looked for a newer commit yet", false, nil
		case commit != "" && !ok && answered:
			return fmt.Sprintf("at %s, which came after %s", revision, commit), true, nil
		}
		return seen, ok, nil
	}, report)
	if err != nil {
		return "", err
	}
	return revision, request(ctx, client, flux.Kustomizations, kustomization, token, report)
}

// newToken marks a request to reconcile.
func newToken() string { return time.Now().UTC().Format(time.RFC3339Nano) }

// fetchedSince says whether a source has handled the request, or one that took its place, and is ready with what it found.
func fetchedSince(source *unstructured.Unstructured, token string) bool {
	handled, _, _ := unstructured.NestedString(source.Object, "status", "lastHandledReconcileAt")
	_, ok := flux.SourceAt("")(source)
	return ok && handled != "" && (handled == token || handled == source.GetAnnotations()[flux.RequestedAt])
}

// request annotates an object, as soon as it exists.
func request(ctx context.Context, client *kube.Client, resource schema.GroupVersionResource, object kube.Object, token string, report func(string)) error {
	return client.Poll(250*time.Millisecond).Until(ctx, func(ctx context.Context) kube.Answer {
		err := annotate(ctx, client, resource, object, token)
		switch {
		case err == nil:
			return kube.Answer{OK: true}
		case kube.IsUnknownKind(err):
			return client.UnknownKind(ctx, resource)
		case apierrors.IsNotFound(err):
			return kube.Answer{Seen: fmt.Sprintf("%s %s does not exist yet", resource.Resource, object.Name)}
		default:
			return kube.Answer{Seen: kube.Brief(err).Error(), Err: err}
		}
	}, report)
}

// annotate asks Flux to reconcile an object.
func annotate(ctx context.Context, client *kube.Client, resource schema.GroupVersionResource, object kube.Object, token string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{flux.RequestedAt: token}}})
	if err != nil {
		return err
	}
	_, err = client.Resource(resource).Namespace(object.Namespace).Patch(ctx, object.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "castle"})
	return err
}
