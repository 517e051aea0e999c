package gates

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"tazlab.net/castle/ci/base/git"
)

// requestedAt asks a Flux controller to reconcile an object now; it answers with the same value in lastHandledReconcileAt.
const requestedAt = "reconcile.fluxcd.io/requestedAt"

// GateRollout is the name of WaitRollout's gate in its events.
const GateRollout = "rollout"

// Delivery is how the blog gets into the cluster. What is left empty has the name that castle's own repositories use.
type Delivery struct {
	Deployment    Object // blog/hugo-blog
	Source        Object // the GitRepository, flux-system/flux-system
	Kustomization Object // the first that takes from it, and makes the others: flux-system/flux-system
}

func (d Delivery) complete() Delivery {
	return Delivery{
		Deployment:    cmp.Or(d.Deployment, Object{"blog", "hugo-blog"}),
		Source:        cmp.Or(d.Source, fluxSource),
		Kustomization: cmp.Or(d.Kustomization, fluxRoot),
	}
}

// ParseObject reads "namespace/name".
func ParseObject(text string) (Object, error) {
	namespace, name, found := strings.Cut(text, "/")
	if !found || namespace == "" || name == "" || strings.Contains(name, "/") {
		return Object{}, fmt.Errorf("%q names no object: want namespace/name, such as blog/hugo-blog", text)
	}
	return Object{namespace, name}, nil
}

// String is what ParseObject reads.
func (o Object) String() string { return o.Namespace + "/" + o.Name }

// Rollout is what a cluster was seen to run; empty where it was not seen.
type Rollout struct {
	Revision string // what Flux has fetched, "main@sha1:<commit>"
	Image    string // what the Deployment runs, as its manifest names it
}

// WaitRollout asks Flux to fetch now, and waits until the blog's Deployment is available with what was fetched.
// env.Revision is the commit of the GitOps repository that must be in it, empty for whatever is newest; env.Image the
// image that must run, empty for whatever that commit names. env.Cluster is not needed. Errors and events are as Run's.
//
// With an image, a commit that somebody pushed afterwards is as good as env.Revision, as long as it has the same image;
// that it has another one ends the wait, because no waiting brings the image back.
func WaitRollout(ctx context.Context, env Env, timeout time.Duration, events func(Event)) (Rollout, error) {
	if env.Kube == nil {
		return Rollout{}, errors.New("waiting for a rollout needs a connection to the cluster's API")
	}
	if env.Image != "" {
		if err := CheckImage(env.Image); err != nil {
			return Rollout{}, err
		}
	}
	r := &rollout{Kube: env.Kube, Delivery: env.Delivery.complete(), revision: env.Revision, image: env.Image, fetched: make(chan struct{}), nudged: map[string]bool{}}
	deployment := "Deployment " + r.Deployment.Name + " in " + r.Deployment.Namespace
	if r.image != "" {
		deployment += " with " + r.image
	}
	err := run(ctx, GateRollout, []Condition{
		row{"Flux to fetch " + cmp.Or(r.revision, "the newest commit"), waiterFunc(r.fetch), "kubectl -n " + r.Source.Namespace + " describe gitrepository " + r.Source.Name},
		row{deployment, waiterFunc(r.rollOut), "kubectl get kustomizations -A; kubectl -n " + r.Deployment.Namespace + " get deployments,pods"},
	}, timeout, events)
	return r.seen, err
}

// CheckImage refuses what no rollout can be waited for with: a repository alone would stand for its tag latest.
func CheckImage(image string) error {
	reference, err := name.ParseReference(image)
	if err != nil {
		return fmt.Errorf("%q is no image: %w", image, err)
	}
	if tag, ok := reference.(name.Tag); ok && !strings.HasSuffix(image, ":"+tag.TagStr()) {
		return fmt.Errorf("%q has no tag: name the image as the Deployment does, such as %s:blog-1a2b3c4", image, image)
	}
	return nil
}

// rollout is one wait for the blog.
type rollout struct {
	*Kube
	Delivery
	revision, image string

	fetched chan struct{} // closed when the source has the revision
	// changed says that the Deployment was seen with another image before Flux was asked: then the image itself tells that
	// the revision was applied, and a Kustomization need not have waited for the health of all else that it applies.
	changed bool
	nudged  map[string]bool
	seen    Rollout
}

func (r *rollout) fetch(ctx context.Context, report func(string)) error {
	// Nothing comes of it where the Deployment cannot be read: then the Kustomization is looked at.
	bounded, cancel := context.WithTimeout(ctx, time.Second)
	now, err := r.dynamic.Resource(deployments).Namespace(r.Deployment.Namespace).Get(bounded, r.Deployment.Name, metav1.GetOptions{})
	cancel()
	r.changed = err == nil && r.image != "" && !hasImage(imagesOf(now), r.image)

	r.seen.Revision, err = Reconcile(ctx, r.Kube, r.Source, r.Kustomization, r.revision, report)
	if err != nil {
		return err
	}
	if r.revision != "" && r.image == "" && !sameCommit(r.seen.Revision, r.revision) {
		return fmt.Errorf("it has fetched %s instead: where that is a later commit, name the image that it shall have", r.seen.Revision)
	}
	close(r.fetched)
	return nil
}

// rollOut waits until the blog runs the image, after the source has fetched the commit that names it.
func (r *rollout) rollOut(ctx context.Context, report func(string)) error {
	report("Flux has not fetched the commit yet")
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-r.fetched:
	}
	targets := []Target{
		{Resource: deployments, Namespace: r.Deployment.Namespace, Name: r.Deployment.Name},
		{Resource: gitRepositories, Namespace: r.Source.Namespace, Name: r.Source.Name},
		{Resource: kustomizations},
	}
	return r.Follow(ctx, targets, func(view View) (string, bool, error) { return r.judge(ctx, view) }, report)
}

func (r *rollout) judge(ctx context.Context, view View) (string, bool, error) {
	if len(view[1]) == 0 {
		return fmt.Sprintf("GitRepository %s does not exist any more", r.Source.Name), false, nil
	}
	at := artifactOf(view[1][0])
	r.nudge(ctx, view[2], at)
	if len(view[0]) == 0 {
		return "does not exist yet", false, nil
	}
	deployment := view[0][0]
	owner := ownerOf(deployment, view[2])
	has := r.image == "" || hasImage(imagesOf(deployment), r.image)
	switch {
	case owner == nil && r.image == "":
		return "no Kustomization has applied it: name the image that it shall run", false, nil
	case owner == nil && !has:
		return "its image is still " + strings.Join(imagesOf(deployment), ", "), false, nil
	case owner != nil && !(has && r.changed):
		if seen, ok := inPlaceAt(at)(owner); !ok {
			return fmt.Sprintf("Kustomization %s: %s", owner.GetName(), seen), false, nil
		}
		if !has || r.image == "" {
			return r.settled(ctx, view[1][0])
		}
	}
	return r.available(deployment)
}

func (r *rollout) available(deployment *unstructured.Unstructured) (string, bool, error) {
	seen, ok := available(deployment)
	if ok {
		r.seen.Image = r.image
		if images := imagesOf(deployment); r.image == "" {
			r.seen.Image = strings.Join(images, ", ")
		}
	}
	return seen, ok, nil
}

// settled judges a Deployment whose Kustomization has applied what the source has. It looks at it once more, since the
// watches of two kinds are not in step, and ends the wait where another image has taken the place of the wanted one.
func (r *rollout) settled(ctx context.Context, source *unstructured.Unstructured) (string, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	now, err := r.dynamic.Resource(deployments).Namespace(r.Deployment.Namespace).Get(ctx, r.Deployment.Name, metav1.GetOptions{})
	if err != nil {
		return brief(err).Error(), false, nil
	}
	if r.image == "" || hasImage(imagesOf(now), r.image) {
		return r.available(now)
	}
	return "", false, fmt.Errorf("at %s of %s, which Flux has applied, the image is %s: a later commit replaced it, or the commit is on another branch or changed another manifest",
		artifactOf(source), git.RedactURL(urlOf(source)), strings.Join(imagesOf(now), ", "))
}

func urlOf(source *unstructured.Unstructured) string {
	url, _, _ := unstructured.NestedString(source.Object, "spec", "url")
	return url
}

// inPlaceAt tests a Kustomization as appliedAt does, and passes it also where it has applied the revision and only the
// health of something keeps it from being ready: the blog's own is looked at by itself.
func inPlaceAt(revision string) Test {
	return func(kustomization *unstructured.Unstructured) (string, bool) {
		attempted, _, _ := unstructured.NestedString(kustomization.Object, "status", "lastAttemptedRevision")
		if attempted == revision && readyReason(kustomization) == "HealthCheckFailed" {
			return "applied " + revision, true
		}
		return appliedAt(revision)(kustomization)
	}
}

// nudge asks the Kustomizations to go on that wait for others which are ready: Flux would look again only after half a
// minute. Each is asked once for a revision; a request that fails is tried with the next change.
func (r *rollout) nudge(ctx context.Context, list []*unstructured.Unstructured, at string) {
	for _, kustomization := range list {
		object := Object{kustomization.GetNamespace(), kustomization.GetName()}
		key := object.String() + " " + at
		if r.nudged[key] || sourceOf(kustomization) != r.Source || readyReason(kustomization) != "DependencyNotReady" || !dependenciesMet(kustomization, list, at) {
			continue
		}
		bounded, cancel := context.WithTimeout(ctx, listTimeout)
		err := r.annotate(bounded, kustomizations, object, newToken())
		cancel()
		r.nudged[key] = err == nil
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
		object := find(list, Object{cmp.Or(namespace, kustomization.GetNamespace()), name})
		if object == nil {
			return false
		}
		met := Test(conditionReady)
		if sourceOf(object) == sourceOf(kustomization) {
			met = appliedAt(revision)
		}
		if _, ok := met(object); !ok {
			return false
		}
	}
	return true
}

func readyReason(object *unstructured.Unstructured) string {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	for _, condition := range conditions {
		if condition, ok := condition.(map[string]any); ok && condition["type"] == "Ready" {
			reason, _ := condition["reason"].(string)
			return reason
		}
	}
	return ""
}

// Reconcile asks Flux to fetch a source now, waits until it has the commit or one that was pushed after it, and then
// asks the Kustomization to apply that now. Without a commit it waits until Flux has fetched whatever is newest. It
// returns the revision that the source has, "main@sha1:<commit>". What is missing yet is waited for until ctx ends.
func Reconcile(ctx context.Context, kube *Kube, source, kustomization Object, commit string, report func(lastSeen string)) (revision string, err error) {
	token := newToken()
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
	return revision, kube.request(ctx, kustomizations, kustomization, token, report)
}

// newToken marks a request to reconcile.
func newToken() string { return time.Now().UTC().Format(time.RFC3339Nano) }

// fetchedSince says whether a source has handled the request, or one that took its place, and is ready with what it found.
func fetchedSince(source *unstructured.Unstructured, token string) bool {
	handled, _, _ := unstructured.NestedString(source.Object, "status", "lastHandledReconcileAt")
	_, ok := sourceAt("")(source)
	return ok && handled != "" && (handled == token || handled == source.GetAnnotations()[requestedAt])
}

// request annotates an object, as soon as it exists.
func (k *Kube) request(ctx context.Context, resource schema.GroupVersionResource, object Object, token string, report func(string)) error {
	question := asking{every: 250 * time.Millisecond, limit: listTimeout, atOnce: 1, grace: k.grace}
	return question.ask(ctx, func(ctx context.Context) answer {
		err := k.annotate(ctx, resource, object, token)
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

// annotate asks Flux to reconcile an object.
func (k *Kube) annotate(ctx context.Context, resource schema.GroupVersionResource, object Object, token string) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{requestedAt: token}}})
	if err != nil {
		return err
	}
	_, err = k.dynamic.Resource(resource).Namespace(object.Namespace).Patch(ctx, object.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "castle"})
	return err
}

// The labels by which Flux marks what a Kustomization applied.
const (
	ownerName      = "kustomize.toolkit.fluxcd.io/name"
	ownerNamespace = "kustomize.toolkit.fluxcd.io/namespace"
)

// ownerOf finds the Kustomization that applied an object, nil when there is none.
func ownerOf(object *unstructured.Unstructured, list []*unstructured.Unstructured) *unstructured.Unstructured {
	labels := object.GetLabels()
	return find(list, Object{labels[ownerNamespace], labels[ownerName]})
}

func find(list []*unstructured.Unstructured, wanted Object) *unstructured.Unstructured {
	for _, object := range list {
		if (Object{object.GetNamespace(), object.GetName()}) == wanted {
			return object
		}
	}
	return nil
}
