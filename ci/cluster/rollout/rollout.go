// Package rollout has Flux fetch and apply a commit of the GitOps repository now, instead of at its next turn, and waits
// until the blog's Deployment is available with it.
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
	flux.Delivery
}

// Seen is what a cluster was seen to run; empty where it was not seen.
type Seen struct {
	Revision string // what Flux has fetched, "main@sha1:<commit>"
	Image    string // what the Deployment runs, as its manifest names it
}

// Wait asks Flux to fetch now, and waits until the blog's Deployment is available with what was fetched.
// Errors and events are as Run's.
//
// With an image, a commit that somebody pushed afterwards is as good as the wanted one, as long as it has the same image;
// that it has another one ends the wait, because no waiting brings the image back.
func Wait(ctx context.Context, client *kube.Client, wanted Wanted, options gates.Options) (Seen, error) {
	if wanted.Image != "" {
		if err := CheckImage(wanted.Image); err != nil {
			return Seen{}, err
		}
	}
	wanted.Delivery = wanted.Delivery.Complete()
	r := &wait{client: client, Wanted: wanted, fetched: make(chan struct{}), nudged: map[string]bool{}}
	deployment := "Deployment " + r.Deployment.Name + " in " + r.Deployment.Namespace
	if r.Image != "" {
		deployment += " with " + r.Image
	}
	err := gates.Wait(ctx, gate, []gates.Condition{
		{
			Name:   "Flux to fetch " + cmp.Or(r.Revision, "the newest commit"),
			Waiter: kube.WaitFunc(r.fetch),
			Next:   "kubectl -n " + r.Source.Namespace + " describe gitrepository " + r.Source.Name,
		},
		{
			Name:   deployment,
			Waiter: kube.WaitFunc(r.rollOut),
			Next:   "kubectl get kustomizations -A; kubectl -n " + r.Deployment.Namespace + " get deployments,pods",
		},
	}, options)
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

// wait is one wait for the blog.
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

func (r *wait) fetch(ctx context.Context, report func(string)) error {
	// Nothing comes of it where the Deployment cannot be read: then the Kustomization is looked at.
	bounded, cancel := context.WithTimeout(ctx, time.Second)
	now, err := r.client.Resource(kube.Deployments).Namespace(r.Deployment.Namespace).Get(bounded, r.Deployment.Name, metav1.GetOptions{})
	cancel()
	r.changed = err == nil && r.Image != "" && !kube.HasImage(kube.Images(now), r.Image)

	r.seen.Revision, err = reconcile(ctx, r.client, r.Source, r.Kustomization, r.Revision, report)
	if err != nil {
		return err
	}
	if r.Revision != "" && r.Image == "" && !flux.SameCommit(r.seen.Revision, r.Revision) {
		return fmt.Errorf("it has fetched %s instead: where that is a later commit, name the image that it shall have", r.seen.Revision)
	}
	close(r.fetched)
	return nil
}

// rollOut waits until the blog runs the image, after the source has fetched the commit that names it.
func (r *wait) rollOut(ctx context.Context, report func(string)) error {
	report("Flux has not fetched the commit yet")
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-r.fetched:
	}
	targets := []kube.Target{
		{Resource: kube.Deployments, Namespace: r.Deployment.Namespace, Name: r.Deployment.Name},
		{Resource: flux.GitRepositories, Namespace: r.Source.Namespace, Name: r.Source.Name},
		{Resource: flux.Kustomizations},
	}
	return r.client.Follow(ctx, targets, func(view kube.View) (string, bool, error) { return r.judge(ctx, view) }, report)
}

func (r *wait) judge(ctx context.Context, view kube.View) (string, bool, error) {
	if len(view[1]) == 0 {
		return fmt.Sprintf("GitRepository %s does not exist any more", r.Source.Name), false, nil
	}
	at := flux.Revision(view[1][0])
	r.nudge(ctx, view[2], at)
	if len(view[0]) == 0 {
		return "does not exist yet", false, nil
	}
	deployment := view[0][0]
	owner := ownerOf(deployment, view[2])
	has := r.Image == "" || kube.HasImage(kube.Images(deployment), r.Image)
	switch {
	case owner == nil && r.Image == "":
		return "no Kustomization has applied it: name the image that it shall run", false, nil
	case owner == nil && !has:
		return "its image is still " + strings.Join(kube.Images(deployment), ", "), false, nil
	case owner != nil && !(has && r.changed):
		if seen, ok := inPlaceAt(at)(owner); !ok {
			return fmt.Sprintf("Kustomization %s: %s", owner.GetName(), seen), false, nil
		}
		if !has || r.Image == "" {
			return r.settled(ctx, view[1][0])
		}
	}
	return r.available(deployment)
}

func (r *wait) available(deployment *unstructured.Unstructured) (string, bool, error) {
	seen, ok := kube.Available(deployment)
	if ok {
		r.seen.Image = r.Image
		if images := kube.Images(deployment); r.Image == "" {
			r.seen.Image = strings.Join(images, ", ")
		}
	}
	return seen, ok, nil
}

// settled judges a Deployment whose Kustomization has applied what the source has. It looks at it once more, since the
// watches of two kinds are not in step, and ends the wait where another image has taken the place of the wanted one.
func (r *wait) settled(ctx context.Context, source *unstructured.Unstructured) (string, bool, error) {
	ctx, cancel := context.WithTimeout(ctx, kube.RequestTimeout)
	defer cancel()
	now, err := r.client.Resource(kube.Deployments).Namespace(r.Deployment.Namespace).Get(ctx, r.Deployment.Name, metav1.GetOptions{})
	if err != nil {
		return kube.Brief(err).Error(), false, nil
	}
	if r.Image == "" || kube.HasImage(kube.Images(now), r.Image) {
		return r.available(now)
	}
	return "", false, fmt.Errorf("at %s of %s, which Flux has applied, the image is %s: a later commit replaced it, or the commit is on another branch or changed another manifest",
		flux.Revision(source), redact.URL(urlOf(source)), strings.Join(kube.Images(now), ", "))
}

func urlOf(source *unstructured.Unstructured) string {
	url, _, _ := unstructured.NestedString(source.Object, "spec", "url")
	return url
}
