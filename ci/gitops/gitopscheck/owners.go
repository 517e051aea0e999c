package gitopscheck

import (
	"tazlab.net/castle/ci/gitops/gitopscheck/fluxtree"
	"tazlab.net/castle/ci/gitops/gitopscheck/manifests"
)

// owners finds objects that two Kustomizations of a cluster apply.
func (c *check) owners() {
	for _, cluster := range c.repository.Clusters {
		type key struct {
			manifests.ID
			on string // the cluster that a Kustomization applies to, where it is another one
		}
		first := map[key]*fluxtree.Kustomization{}
		for _, k := range cluster.Kustomizations {
			if k.Suspended() {
				continue
			}
			for _, object := range k.Objects {
				if shares(object) || manifests.HasUnknown(object.GetName()+object.GetNamespace()) {
					continue
				}
				key := key{object.ID(), manifests.Text(k.Object.Object, "spec", "kubeConfig", "secretRef", "name")}
				if key.Namespace == "" {
					if namespaced, known := c.schemas.Namespaced(key.Group, key.Kind); known && namespaced {
						key.Namespace = "default"
					}
				}
				other, taken := first[key]
				if !taken {
					first[key] = k
					continue
				}
				if other != k {
					c.on(object, nil, ruleOwners, other.ID().String()+" and "+k.ID().String(), "%s is applied by %s and by %s, and the one that drops it deletes it: leave it in one of them", object.ID(), other.ID(), k.ID())
				}
			}
		}
	}
}

// shares says that an object is not one Kustomization's alone, and says so.
//
// https://fluxcd.io/flux/components/kustomize/kustomizations/#controlling-the-apply-behavior-of-resources
func shares(object *manifests.Object) bool {
	annotations, labels := object.GetAnnotations(), object.GetLabels()
	for _, marks := range []map[string]string{annotations, labels} {
		switch {
		case marks[fluxtree.KustomizeGroup+"/prune"] == "disabled", marks[fluxtree.KustomizeGroup+"/reconcile"] == "disabled":
			return true
		}
		switch marks[fluxtree.KustomizeGroup+"/ssa"] {
		case "Merge", "IfNotPresent", "Ignore":
			return true
		}
	}
	return false
}
