package rollout

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tazlab.net/castle/ci/cluster/kube"
)

// complete puts defaults where nothing is named, and refuses what names no Deployment at all.
func (w *Wanted) complete() error {
	w.Delivery = w.Delivery.Complete()
	if w.Repository == "" {
		w.Repository = repositoryOf(w.Image)
	}
	if w.Deployment == (kube.Object{}) && w.Name == "" && w.Repository == "" {
		return errors.New("it is not known which Deployment to wait for: name it (--deployment namespace/name), or the image that it runs (--image)")
	}
	return nil
}

// repositoryOf is an image's name without its tag and digest, as it is written.
func repositoryOf(image string) string {
	image, _, _ = strings.Cut(image, "@")
	if colon := strings.LastIndexByte(image, ':'); colon > strings.LastIndexByte(image, '/') {
		image = image[:colon]
	}
	return image
}

// Subject is the Deployment for a report: as it was seen, else as it was asked for.
func (w Wanted) Subject(seen Seen) string {
	deployment := cmp.Or(w.Deployment, seen.Deployment)
	switch {
	case deployment != kube.Object{}:
		return deployment.String()
	case w.Name != "":
		return w.Name
	}
	return "the Deployment of " + cmp.Or(w.Repository, repositoryOf(w.Image))
}

func (w Wanted) title() string {
	switch {
	case w.Deployment != kube.Object{}:
		return "Deployment " + w.Deployment.Name + " in " + w.Deployment.Namespace
	case w.Name != "":
		return "Deployment " + w.Name
	}
	return "the Deployment of " + w.Repository
}

// where are the words that have kubectl look where the Deployment is.
func (w Wanted) where() string {
	if w.Deployment == (kube.Object{}) {
		return "-A"
	}
	return "-n " + w.Deployment.Namespace
}

// target is what is watched to find the Deployment.
func (w Wanted) target() kube.Target {
	return kube.Target{Resource: kube.Deployments, Namespace: w.Deployment.Namespace, Name: w.Deployment.Name}
}

// choose picks the one that is meant among all that were seen; nil where it is not there yet. Several are an error, since
// waiting does not tell them apart.
func (w Wanted) choose(seen []*unstructured.Unstructured) (*unstructured.Unstructured, error) {
	meant := slices.Clone(seen)
	keep := func(has func(*unstructured.Unstructured) bool) {
		meant = slices.DeleteFunc(meant, func(d *unstructured.Unstructured) bool { return !has(d) })
	}
	if w.Deployment == (kube.Object{}) && w.Name != "" {
		keep(func(d *unstructured.Unstructured) bool { return d.GetName() == w.Name })
	}
	// One that is alone in its name is meant whatever it runs: it may be about to get its first image of the repository.
	if w.Deployment == (kube.Object{}) && w.Repository != "" && (w.Name == "" || len(meant) > 1) {
		keep(func(d *unstructured.Unstructured) bool { return kube.HasRepository(kube.Images(d), w.Repository) })
	}
	switch len(meant) {
	case 0:
		return nil, nil
	case 1:
		return meant[0], nil
	}
	names := make([]string, len(meant))
	for i, deployment := range meant {
		names[i] = kube.ObjectOf(deployment).String()
	}
	return nil, fmt.Errorf("%d Deployments may be meant: %s; name one with --deployment", len(meant), strings.Join(names, ", "))
}

// now is the Deployment as it is, nil where there is none.
func (w *wait) now(ctx context.Context) (*unstructured.Unstructured, error) {
	target := w.target()
	if target.Name != "" {
		return w.client.Resource(kube.Deployments).Namespace(target.Namespace).Get(ctx, target.Name, metav1.GetOptions{})
	}
	list, err := w.client.Resource(kube.Deployments).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	all := make([]*unstructured.Unstructured, len(list.Items))
	for i := range list.Items {
		all[i] = &list.Items[i]
	}
	return w.choose(all)
}
