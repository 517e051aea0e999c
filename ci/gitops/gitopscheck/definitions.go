package gitopscheck

import (
	"bytes"
	"slices"
	"strings"

	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/gitops/gitopscheck/fluxtree"
	"tazlab.net/castle/ci/gitops/gitopscheck/manifests"
)

// groupOfDefinition is the group and kind that a CustomResourceDefinition defines, if the object is one.
func groupOfDefinition(object *manifests.Object) (group, kind string) {
	if !object.Is("apiextensions.k8s.io", "CustomResourceDefinition") {
		return "", ""
	}
	return manifests.Text(object.Object, "spec", "group"), manifests.Text(object.Object, "spec", "names", "kind")
}

// isFluxs says that a group is Flux's own: whoever reads the repository has it already.
func isFluxs(group string) bool {
	return strings.HasSuffix(group, ".toolkit.fluxcd.io") || group == "fluxcd.controlplane.io" || group == "source.extensions.fluxcd.io"
}

// definitionsOfCharts finds custom resources whose definition comes with a chart of the same Kustomization, and from nowhere else.
// kustomize-controller asks the API server about all objects before it applies any but definitions and namespaces, and gives up
// at the first that is of an unknown kind: ResourceManager.ApplyAllStaged and ApplyAll in fluxcd/pkg/ssa v0.76, manager_apply.go.
func (c *check) definitionsOfCharts() {
	c.kustomizations(func(cluster *fluxtree.Cluster, k *fluxtree.Kustomization) {
		all := cluster.Objects()
		for _, release := range k.Objects {
			if !isRelease(release) {
				continue
			}
			for _, group := range defines(release, all) {
				if c.definedElsewhere(cluster, k, release, group) {
					continue
				}
				var resources []*manifests.Object
				for _, object := range k.Objects {
					if manifests.GroupOf(object.GetAPIVersion()) == group {
						resources = append(resources, object)
					}
				}
				if len(resources) == 0 {
					continue
				}
				more := ""
				if len(resources) > 1 {
					more = " and " + rendering.Count(len(resources)-1, "other object")
				}
				c.on(resources[0], nil, ruleCRDWithCR, group+" in "+k.ID().String(),
					"%s%s: the definition comes with %s, which is in the same Kustomization and so never applied: move one of them, and have it wait",
					resources[0].ID(), more, release.ID())
			}
		}
	})
}

// definedElsewhere says that a group's definitions also come by another way, or may: from another Kustomization or repository, or
// from a helmfile that is run before Flux is there.
func (c *check) definedElsewhere(cluster *fluxtree.Cluster, but *fluxtree.Kustomization, release *manifests.Object, group string) bool {
	all := cluster.Objects()
	chart, _ := chartOf(release, all)
	for _, k := range cluster.Kustomizations {
		if k.Folder == "" && strings.Contains(strings.ToLower(k.GetName()+manifests.Text(k.Object.Object, "spec", "path")), "crd") {
			return true
		}
		for _, base := range k.Remote {
			if strings.Contains(base, chart) || strings.Contains(base, group) || strings.Contains(strings.ToLower(base), "/crd") {
				return true
			}
		}
		for _, object := range k.Objects {
			if defined, _ := groupOfDefinition(object); defined == group {
				return true
			}
			if k != but && isRelease(object) && slices.Contains(defines(object, all), group) {
				return true
			}
		}
	}
	for _, file := range c.repository.Files.ByName {
		if strings.Contains(file.Name, "helmfile") && (bytes.Contains(file.Text, []byte(chart)) || bytes.Contains(file.Text, []byte("name: "+release.GetName()))) {
			return true
		}
	}
	return false
}

func (c *check) definitions() {
	c.kustomizations(func(_ *fluxtree.Cluster, k *fluxtree.Kustomization) {
		defined := map[[2]string]*manifests.Object{}
		for _, object := range k.Objects {
			if group, kind := groupOfDefinition(object); group != "" && !isFluxs(group) {
				defined[[2]string{group, kind}] = object
			}
		}
		for _, object := range k.Objects {
			group := manifests.GroupOf(object.GetAPIVersion())
			if definition := defined[[2]string{group, object.GetKind()}]; definition != nil {
				c.on(object, nil, ruleCRDBesideCR, definition.GetName()+" in "+k.ID().String(),
					"%s: %s defines its kind, and is in the same Kustomization: give the definitions one of their own, and depend on it", object.ID(), definition.GetName())
			}
		}
	})
}
