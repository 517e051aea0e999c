// Package flux is what castle knows of Flux's objects: their kinds, the names of castle's own, and what is to be read off one
// about the revision that it has.
package flux

import (
	"cmp"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"tazlab.net/castle/ci/cluster/kube"
)

// The kinds of Flux that castle looks at.
var (
	GitRepositories = schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "gitrepositories"}
	Kustomizations  = schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}
	HelmReleases    = schema.GroupVersionResource{Group: "helm.toolkit.fluxcd.io", Version: "v2", Resource: "helmreleases"}
)

// RequestedAt asks a Flux controller to reconcile an object now; it answers with the same value in lastHandledReconcileAt.
const RequestedAt = "reconcile.fluxcd.io/requestedAt"

// Namespace is where Flux runs, with castle's own source.
const Namespace = "flux-system"

// NotificationController takes what the other controllers tell.
const NotificationController = "notification-controller"

// Delivery is how an image gets into a cluster.
type Delivery struct {
	Deployment    kube.Object // none: the one that runs the image
	Source        kube.Object // the GitRepository
	Kustomization kube.Object // the first that takes from it, and makes the others
}

// DefaultDelivery has the names of the layer gitops, which are those of `flux bootstrap`.
var DefaultDelivery = Delivery{
	Source:        kube.Object{Namespace: Namespace, Name: "flux-system"},
	Kustomization: kube.Object{Namespace: Namespace, Name: "flux-system"},
}

// Complete puts the names of DefaultDelivery where there is none.
func (d Delivery) Complete() Delivery {
	return Delivery{
		Deployment:    d.Deployment,
		Source:        cmp.Or(d.Source, DefaultDelivery.Source),
		Kustomization: cmp.Or(d.Kustomization, DefaultDelivery.Kustomization),
	}
}
