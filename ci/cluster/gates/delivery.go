package gates

import (
	"cmp"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The kinds of Flux that castle looks at.
var (
	gitRepositories = schema.GroupVersionResource{Group: "source.toolkit.fluxcd.io", Version: "v1", Resource: "gitrepositories"}
	kustomizations  = schema.GroupVersionResource{Group: "kustomize.toolkit.fluxcd.io", Version: "v1", Resource: "kustomizations"}
)

// Delivery is how the blog gets into a cluster.
type Delivery struct {
	Deployment    Object
	Source        Object // the GitRepository
	Kustomization Object // the first that takes from it, and makes the others
}

// defaultDelivery has the names of castle's own repositories and layers.
var defaultDelivery = Delivery{
	Deployment:    Object{"blog", "hugo-blog"},
	Source:        Object{"flux-system", "flux-system"},
	Kustomization: Object{"flux-system", "flux-system"},
}

// complete puts the names of defaultDelivery where there is none.
func (d Delivery) complete() Delivery {
	return Delivery{
		Deployment:    cmp.Or(d.Deployment, defaultDelivery.Deployment),
		Source:        cmp.Or(d.Source, defaultDelivery.Source),
		Kustomization: cmp.Or(d.Kustomization, defaultDelivery.Kustomization),
	}
}
