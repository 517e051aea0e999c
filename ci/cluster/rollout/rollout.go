// Package rollout has Flux fetch and apply a commit of the GitOps repository now, instead of at its next turn, and waits
// until a Deployment is available with it.
package rollout

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tazlab.net/castle/ci/base/redact"
	"tazlab.net/castle/ci/cluster/flux"
	"tazlab.net/castle/ci/cluster/gates"
	"tazlab.net/castle/ci/cluster/kube"
)

// gate is what its conditions are called together.
const gate = "rollout"

// Wanted is what a cluster shall run.
type Wanted struct {
	// Revision is the commit of the GitOps repository that must be in it. Empty: whatever is newest.
	Revision string
	// Image is what the Deployment must run, with its tag. Empty: whatever the commit names.
	Image string
	// Name and Repository tell which Deployment is meant where Delivery names none: its name, in whatever namespace, and
	// the repository of one of its images, by default that of Image. Either may be empty.
	Name, Repository string
	flux.Delivery
}

// Seen is what a cluster was seen to run; empty where it was not seen.
type Seen struct {
	Revision   string // what Flux has fetched, "main@sha1:<commit>"
	Image      string // what the Deployment runs, as its manifest names it
	Deployment kube.Object
}

// Wait asks Flux to fetch now, and waits until the Deployment is available with what was fetched. Errors and events
// are those of gates.Wait.
//
// With an image, a commit that somebody pushed afterwards is as good as the wanted one, as long as it has the same image;
// that it has another one ends the wait, because no waiting brings the image back.
func Wait(ctx context.Context, client *kube.Client, wanted Wanted, options gates.Options) (Seen, error) {
	if wanted.Image != "" {
		if err := CheckImage(wanted.Image); err != nil {
			return Seen{}, err
		}
	}
	if err := wanted.complete(); err != nil {
		return Seen{}, err
	}
	w := &wait{client: client, Wanted: wanted, fetched: make(chan struct{}), nudged: map[string]bool{}}
	deployment := wanted.title()
	if w.Image != "" {
		deployment += " with " + w.Image
	}
	err := gates.Wait(ctx, gate, []gates.Condition{
		{
			Name:   "Flux to fetch " + cmp.Or(w.Revision, "the newest commit"),
			Waiter: kube.WaitFunc(w.fetch),
			Next:   "kubectl -n " + w.Source.Namespace + " describe gitrepository " + w.Source.Name,
		},
		{
			Name:   deployment,
			Waiter: kube.WaitFunc(w.rollOut),
			Next:   "kubectl get kustomizations -A; kubectl " + wanted.where() + " get deployments,pods",
		},
	}, options)
	if err != nil && w.failed(ctx) {
		err = &FailedError{err}
	}
	return w.seen, err
}

// FailedError says that the Deployment was given the image and is not available with it, as it was seen after the wait. Any
// other error leaves open what became of the image.
type FailedError struct{ err error }

func (e *FailedError) Error() string { return e.err.Error() }

func (e *FailedError) Unwrap() error { return e.err }

// failed looks at the Deployment once more. A cluster that does not answer, a commit that Flux has not fetched or not applied, and
// another image are no failure of this one.
func (w *wait) failed(ctx context.Context) bool {
	select {
	case <-w.fetched:
	default:
		return false
	}
	if w.Image == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, kube.RequestTimeout)
	defer cancel()
	now, err := w.now(ctx)
	if err != nil || now == nil || !kube.HasImage(kube.Images(now), w.Image) {
		return false
	}
	_, available := kube.Available(now)
	return !available
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

// wait is one wait.
type wait struct {
	client *kube.Client
	Wanted

	fetched chan struct{} // closed when the source has the revision
	// changed says that the Deployment was seen with another image before Flux was asked: then the image itself tells that
	// the revision was applied, and a Kustomization need not have waited for the health of all else that it applies.
	changed bool
	nudged  map[string]bool
	seen    Seen
}

func (w *wait) fetch(ctx context.Context, report func(string)) error {
	// Nothing comes of it where the Deployment cannot be read: then the Kustomization is looked at.
	bounded, cancel := context.WithTimeout(ctx, time.Second)
	now, err := w.now(bounded)
	cancel()
	w.changed = err == nil && now != nil && w.Image != "" && !kube.HasImage(kube.Images(now), w.Image)

	w.seen.Revision, err = reconcile(ctx, w.client, w.Source, w.Kustomization, w.Revision, report)
	if err != nil {
		return err
	}
	if w.Revision != "" && w.Image == "" && !flux.SameCommit(w.seen.Revision, w.Revision) {
		return fmt.Errorf("it has fetched %s instead: where that is a later commit, name the image that it shall have", w.seen.Revision)
	}
	close(w.fetched)
	return nil
}

// rollOut waits until the Deployment runs the image, after the source has fetched the commit that names it.
func (w *wait) rollOut(ctx context.Context, report func(string)) error {
	report("Flux has not fetched the commit yet")
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-w.fetched:
	}
	targets := []kube.Target{
		w.target(),
		{Resource: flux.GitRepositories, Namespace: w.Source.Namespace, Name: w.Source.Name},
		{Resource: flux.Kustomizations},
	}
	return w.client.Follow(ctx, targets, func(view kube.View) (string, bool, error) { return w.judge(ctx, view) }, report)
}

func (w *wait) judge(ctx context.Context, view kube.View) (string, bool, error) {
	if len(view[1]) == 0 {
		return fmt.Sprintf("GitRepository %s does not exist any more", w.Source.Name), false, nil
	}
	at := flux.Revision(view[1][0])
	w.nudge(ctx, view[2], at)
	deployment, err := w.choose(view[0])
	if err != nil {
		return "", false, err
	}
	if deployment == nil {
		return "does not exist yet", false, nil
	}
	w.seen.Deployment = kube.ObjectOf(deployment)
	owner := ownerOf(deployment, view[2])
	has := w.Image == "" || kube.HasImage(kube.Images(deployment), w.Image)
	switch {
	case owner == nil && w.Image == "":
		return "no Kustomization has applied it: name the image that it shall run", false, nil
	case owner == nil && !has:
		return "its image is still " + strings.Join(kube.Images(deployment), ", "), false, nil
	case owner != nil && !(has && w.changed):
		if seen, ok := inPlaceAt(at)(owner); !ok {
			return fmt.Sprintf("Kustomization %s: %s", owner.GetName(), seen), false, nil
		}
		if !has || w.Image == "" {
			return w.settled(ctx, view[1][0])
		}
	}
	return w.available(deployment)
}

func (w *wait) available(deployment *unstructured.Unstructured) (string, bool, error) {
	seen, ok := kube.Available(deployment)
	if ok {
		w.seen.Image = w.Image
		if images := kube.Images(deployment); w.Image == "" {
			w.seen.Image = strings.Join(images, ", ")
		}
	}
	return seen, ok, nil
}

// settled judges a Deployment whose Kustomization has applied what the source has. It looks at it once more, since the
// watches of two kinds are not in step, and ends the wait where another image has taken the place of the wanted one.
func (w *wait) settled(ctx context.Context, source *unstructured.Unstructured) (string, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, kube.RequestTimeout)
	defer cancel()
	now, err := w.client.Resource(kube.Deployments).Namespace(w.seen.Deployment.Namespace).Get(ctx, w.seen.Deployment.Name, metav1.GetOptions{})
	if err != nil {
		return kube.Brief(err).Error(), false, nil
	}
	if w.Image == "" || kube.HasImage(kube.Images(now), w.Image) {
		return w.available(now)
	}
	return "", false, fmt.Errorf("at %s of %s, which Flux has applied, the image is %s: a later commit replaced it, or the commit is on another branch or changed another manifest",
		flux.Revision(source), redact.URL(urlOf(source)), strings.Join(kube.Images(now), ", "))
}

func urlOf(source *unstructured.Unstructured) string {
	url, _, _ := unstructured.NestedString(source.Object, "spec", "url")
	return url
}
