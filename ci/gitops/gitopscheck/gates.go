package gitopscheck

import (
	"slices"
	"time"

	"tazlab.net/castle/ci/gitops/gitopscheck/fluxtree"
	"tazlab.net/castle/ci/gitops/gitopscheck/manifests"
)

// longTimeout is three times what helm-controller gives a release that says nothing: whoever writes that much knows that it takes long.
const longTimeout = 15 * time.Minute

// gates finds heavy charts in Kustomizations that others wait for.
func (c *check) gates() {
	for _, cluster := range c.repository.Clusters {
		waiting := map[manifests.ID]manifests.ID{} // who is waited for, and by whom
		for _, k := range cluster.Kustomizations {
			for _, id := range dependsOn(k.Object) {
				waiting[id] = k.ID()
			}
		}
		all := cluster.Objects()
		for _, k := range cluster.Kustomizations {
			by, is := waiting[k.ID()]
			if !is || k.Suspended() {
				continue
			}
			for _, release := range k.Objects {
				if !isRelease(release) || !waitsFor(k, release) || !hasMore(k, release) {
					continue
				}
				name, _ := chartOf(release, all)
				var timeout time.Duration
				if release.Document != nil { // what a patch gives to all releases says nothing of this one
					timeout, _ = time.ParseDuration(manifests.Text(release.Document.Object, "spec", "timeout"))
				}
				switch {
				case known[name].heavy:
					c.on(release, nil, ruleHeavyGate, k.ID().String(), "%s: %s takes minutes, and %s waits for all of its Kustomization: give the chart one of its own", release.ID(), name, by)
				case timeout >= longTimeout:
					c.on(release, []string{"spec", "timeout"}, ruleHeavyGate, k.ID().String(), "%s may take %s, and %s waits for all of its Kustomization: give the chart one of its own", release.ID(), timeout, by)
				}
			}
		}
	}
}

// waitsFor says that a Kustomization is not ready before a HelmRelease of it is.
func waitsFor(k *fluxtree.Kustomization, release *manifests.Object) bool {
	if manifests.Value(k.Object.Object, "spec", "wait") == true {
		return true
	}
	for _, check := range manifests.List(k.Object.Object, "spec", "healthChecks") {
		if manifests.Text(check, "kind") == fluxRelease && manifests.Text(check, "name") == release.GetName() {
			return true
		}
	}
	return false
}

// hasMore says that a Kustomization applies something beside a release that takes time until it is ready. Who depends on a Kustomization of one chart means
// that chart.
func hasMore(k *fluxtree.Kustomization, release *manifests.Object) bool {
	return slices.ContainsFunc(k.Objects, func(object *manifests.Object) bool {
		return object != release && (isRelease(object) || podTemplate(object) != nil || object.Is(fluxtree.KustomizeGroup, "Kustomization"))
	})
}
