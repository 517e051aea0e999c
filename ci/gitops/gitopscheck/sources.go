package gitopscheck

import (
	"slices"

	"tazlab.net/castle/ci/gitops/gitopscheck/fluxtree"
	"tazlab.net/castle/ci/gitops/gitopscheck/manifests"
)

// sources looks whether what Kustomizations, HelmReleases and HelmCharts refer to is made somewhere.
func (c *check) sources() {
	for _, cluster := range c.repository.Clusters {
		if broken(cluster) {
			continue
		}
		have := map[manifests.ID]bool{}
		for _, object := range cluster.Objects() {
			have[object.ID()] = true
		}
		look := func(object *manifests.Object, at ...string) {
			reference := manifests.Map(object.Object, at...)
			if reference == nil {
				return
			}
			kind, name := manifests.Text(reference, "kind"), manifests.Text(reference, "name")
			id := manifests.ID{Group: fluxtree.SourceGroup, Kind: kind, Namespace: orElse(manifests.Text(reference, "namespace"), object.GetNamespace()), Name: name}
			if have[id] || name == "" || hasUnknown(reference) || c.byHand(id) || c.madeByFlux(id) {
				return
			}
			c.on(object, append(at, "name"), ruleSourceMissing, id.String(), "%s refers to %s, which nothing makes: correct the reference, or add it", object.ID(), id)
		}
		for _, k := range cluster.Kustomizations {
			if k.Suspended() {
				continue
			}
			look(k.Object, "spec", "sourceRef")
			for _, object := range k.Objects {
				switch {
				case isRelease(object):
					look(object, "spec", "chart", "spec", "sourceRef")
					look(object, "spec", "chartRef")
				case object.Is(fluxtree.SourceGroup, "HelmChart"):
					look(object, "spec", "sourceRef")
				}
			}
		}
	}
}

// byHand says that a document of the repository makes an object, and no Kustomization applies it: somebody else may have done so.
func (c *check) byHand(id manifests.ID) bool {
	return slices.ContainsFunc(c.repository.Files.Of(id.Group, id.Kind), func(document *manifests.Document) bool {
		return document.Name == id.Name && (document.Namespace == id.Namespace || document.Namespace == "") && !c.repository.Applied[document]
	})
}

// madeByFlux says that Flux itself makes a source: of the repository it was bootstrapped with, by an operator, or out of others.
func (c *check) madeByFlux(id manifests.ID) bool {
	switch id.Kind {
	case "GitRepository", "OCIRepository", "Bucket":
		if id.Name == "flux-system" {
			return true
		}
		for _, instance := range c.repository.Files.Of("fluxcd.controlplane.io", "FluxInstance") {
			if sync := manifests.Map(instance.Object, "spec", "sync"); sync != nil && orElse(manifests.Text(sync, "name"), instance.Namespace) == id.Name {
				return true
			}
		}
	case "ExternalArtifact":
		for _, generator := range c.repository.Files.Of("source.extensions.fluxcd.io", "ArtifactGenerator") {
			for _, artifact := range manifests.List(generator.Object, "spec", "artifacts") {
				if manifests.Text(artifact, "name") == id.Name {
					return true
				}
			}
		}
	}
	return false
}
