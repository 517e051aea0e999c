package gitopscheck

import (
	"slices"
	"strconv"
	"strings"

	"tazlab.net/castle/ci/gitops/gitopscheck/fluxtree"
	"tazlab.net/castle/ci/gitops/gitopscheck/manifests"
)

// dependencies looks at dependsOn of Kustomizations and of HelmReleases. Each waits for others of its own kind.
func (c *check) dependencies() {
	for _, cluster := range c.repository.Clusters {
		var kustomizations, releases []*manifests.Object
		for _, k := range cluster.Kustomizations {
			kustomizations = append(kustomizations, k.Object)
			for _, object := range k.Objects {
				if isRelease(object) && !k.Suspended() {
					releases = append(releases, object)
				}
			}
		}
		whole := !broken(cluster)
		c.depend(kustomizations, whole)
		c.depend(releases, whole)
		c.waitForParents(cluster)
	}
}

// dependsOn are the objects that one waits for, in their order.
func dependsOn(object *manifests.Object) []manifests.ID {
	var all []manifests.ID
	for _, entry := range manifests.List(object.Object, "spec", "dependsOn") {
		id := object.ID()
		id.Name, id.Namespace = manifests.Text(entry, "name"), orElse(manifests.Text(entry, "namespace"), id.Namespace)
		all = append(all, id)
	}
	return all
}

func (c *check) depend(objects []*manifests.Object, whole bool) {
	byID := map[manifests.ID]*manifests.Object{}
	for _, object := range objects {
		byID[object.ID()] = object
	}
	for _, object := range objects {
		for i, id := range dependsOn(object) {
			if byID[id] == nil && whole && !manifests.HasUnknown(id.Name+id.Namespace) {
				c.on(object, []string{"spec", "dependsOn", strconv.Itoa(i)}, ruleDependsMissing, id.String(),
					"%s depends on %s, which does not exist: correct name or namespace, or take the entry away", object.ID(), id)
			}
		}
	}
	done := map[manifests.ID]bool{}
	for _, object := range objects {
		c.circle(object, byID, nil, done)
	}
}

// circle follows dependsOn from an object on, and tells of each way that leads back into itself once.
func (c *check) circle(object *manifests.Object, byID map[manifests.ID]*manifests.Object, way []manifests.ID, done map[manifests.ID]bool) {
	if at := slices.Index(way, object.ID()); at >= 0 {
		var names []string
		for _, id := range append(slices.Clone(way[at:]), object.ID()) {
			names = append(names, id.Namespace+"/"+id.Name)
		}
		c.on(object, []string{"spec", "dependsOn"}, ruleDependsLoop, object.ID().String(), "%ss wait for each other: %s: take one dependsOn away", object.GetKind(), strings.Join(names, " -> "))
		return
	}
	if done[object.ID()] {
		return
	}
	way = append(slices.Clone(way), object.ID())
	for _, id := range dependsOn(object) {
		if next := byID[id]; next != nil {
			c.circle(next, byID, way, done)
		}
	}
	done[object.ID()] = true
}

// waitForParents finds Kustomizations that wait for the one that applies them, while that waits until all it applies is ready.
func (c *check) waitForParents(cluster *fluxtree.Cluster) {
	for _, parent := range cluster.Kustomizations {
		if manifests.Value(parent.Object.Object, "spec", "wait") != true {
			continue
		}
		for _, child := range parent.Objects {
			if child.Is(fluxtree.KustomizeGroup, "Kustomization") && slices.Contains(dependsOn(child), parent.ID()) {
				c.on(child, []string{"spec", "dependsOn"}, ruleDependsLoop, child.ID().String(),
					"%s depends on %s, which applies it and waits until it is ready: take the dependsOn or the wait away", child.ID(), parent.ID())
			}
		}
	}
}
