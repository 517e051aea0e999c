package gitopscheck

import (
	"slices"

	"tazlab.net/castle/ci/gitops/gitopscheck/manifests"
)

// given are the namespaces that every cluster has, and Flux's own.
var given = []string{"", "default", "kube-system", "kube-public", "kube-node-lease", "flux-system"}

// namespaces finds those that objects are in and nothing makes.
func (c *check) namespaces() {
	for _, cluster := range c.repository.Clusters {
		if broken(cluster) {
			continue
		}
		made := map[string]bool{}
		objects := cluster.Objects()
		for _, object := range objects {
			switch {
			case object.Is("", "Namespace"):
				made[object.GetName()] = true
			case isRelease(object) && manifests.Value(object.Object, "spec", "install", "createNamespace") == true:
				made[orElse(manifests.Text(object.Object, "spec", "targetNamespace"), object.GetNamespace())] = true
			}
		}
		told := map[string]bool{}
		for _, object := range objects {
			namespace := object.GetNamespace()
			if namespaced, known := c.schemas.Namespaced(manifests.GroupOf(object.GetAPIVersion()), object.GetKind()); known && !namespaced {
				continue
			}
			if told[namespace] || made[namespace] || slices.Contains(given, namespace) || manifests.HasUnknown(namespace) || c.byHand(manifests.ID{Kind: "Namespace", Name: namespace}) {
				continue
			}
			told[namespace] = true
			c.on(object, []string{"metadata", "namespace"}, ruleNamespace, namespace, "%s: nothing makes the namespace %s: add a Namespace, or write its right name", object.ID(), namespace)
		}
	}
}
