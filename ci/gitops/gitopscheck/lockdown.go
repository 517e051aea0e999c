package gitopscheck

import (
	"slices"
	"strings"

	"tazlab.net/castle/ci/base/rendering"
	"tazlab.net/castle/ci/gitops/gitopscheck/fluxtree"
	"tazlab.net/castle/ci/gitops/gitopscheck/manifests"
)

const (
	// fluxNamespace is where Flux runs, and where an object without a service account has the default one.
	fluxNamespace = "flux-system"
	// reconciler is the default service account of a cluster of castle's (ci/cluster/flux).
	reconciler = "flux-reconciler"

	notificationGroup = "notification.toolkit.fluxcd.io"
	imageGroup        = "image.toolkit.fluxcd.io"
)

// lockdown looks for what fails where Flux runs with its multi-tenancy lockdown. What does not say that its Flux does gets a note alone.
func (c *check) lockdown() {
	before := len(c.found)
	c.kustomizations(func(_ *fluxtree.Cluster, k *fluxtree.Kustomization) {
		if k.Suspended() {
			return
		}
		c.locked(k.Object)
		for _, base := range k.Remote {
			if !strings.HasSuffix(base, ".yaml") && !strings.HasSuffix(base, ".yml") { // a file at an address is still read
				c.on(k.Object, []string{"spec", "path"}, ruleLockdown, base,
					"%s: the base %s is at another host: copy it into the repository, or give it a source and a Kustomization of its own", k.ID(), base)
			}
		}
		for _, object := range k.Objects {
			if !object.Is(fluxtree.KustomizeGroup, "Kustomization") { // which come by themselves
				c.locked(object)
			}
		}
	})
	if found := c.found[before:]; len(found) > 0 && !c.lockedDown() {
		c.note("%s would fail where Flux runs with its multi-tenancy lockdown, as castle installs it: --lockdown names them", rendering.Count(len(found), "object"))
		c.found = slices.Delete(c.found, before, len(c.found))
	}
}

// lockedDown says that Flux is known to run with the lockdown: somebody says so, the repository has objects applied as the account of
// castle's Flux, or it has the Flux Operator install it so.
func (c *check) lockedDown() bool {
	if c.lockdownAsked {
		return true
	}
	for _, instance := range c.repository.Files.Of("fluxcd.controlplane.io", "FluxInstance") {
		if manifests.Value(instance.Object, "spec", "cluster", "multitenant") == true {
			return true
		}
	}
	for _, cluster := range c.repository.Clusters {
		for _, object := range cluster.Objects() {
			if manifests.Text(object.Object, "spec", "serviceAccountName") == reconciler {
				return true
			}
		}
	}
	return false
}

// locked takes down what of an object of Flux's would fail.
func (c *check) locked(object *manifests.Object) {
	switch {
	case object.Is(fluxtree.KustomizeGroup, "Kustomization"):
		c.crossing(object, "spec", "sourceRef")
		c.account(object)
	case isRelease(object):
		c.crossing(object, "spec", "chart", "spec", "sourceRef")
		c.crossing(object, "spec", "chartRef")
		c.account(object)
	case object.Is(imageGroup, "ImageUpdateAutomation"):
		c.crossing(object, "spec", "sourceRef")
	case object.Is(imageGroup, "ImagePolicy"):
		c.crossing(object, "spec", "imageRepositoryRef")
	case object.Is(notificationGroup, "Alert"):
		c.crossingIn(object, "eventSources")
	case object.Is(notificationGroup, "Receiver"):
		c.crossingIn(object, "resources")
	}
}

func (c *check) crossing(object *manifests.Object, path ...string) {
	reference := manifests.Map(object.Object, path...)
	namespace := manifests.Text(reference, "namespace")
	if namespace == "" || namespace == object.GetNamespace() || hasUnknown(reference) {
		return
	}
	c.on(object, append(path, "namespace"), ruleLockdown, "references to "+namespace,
		"%s refers to %s %s in the namespace %s: give it one in %s, or move it to %[4]s and write spec.targetNamespace",
		object.ID(), orElse(manifests.Text(reference, "kind"), "the object"), manifests.Text(reference, "name"), namespace, object.GetNamespace())
}

func (c *check) crossingIn(object *manifests.Object, field string) {
	for _, reference := range manifests.List(object.Object, "spec", field) {
		namespace := manifests.Text(reference, "namespace")
		if namespace != "" && namespace != object.GetNamespace() && !hasUnknown(reference) {
			c.on(object, []string{"spec", field}, ruleLockdown, "references to "+namespace,
				"%s names objects of the namespace %s in spec.%s, which Flux then ignores: make one of it in that namespace", object.ID(), namespace, field)
		}
	}
}

// account takes down an object that would be applied as a service account which nobody has given any rights.
func (c *check) account(object *manifests.Object) {
	if object.GetNamespace() == fluxNamespace || manifests.Text(object.Object, "spec", "serviceAccountName") != "" {
		return
	}
	c.on(object, []string{"spec"}, ruleLockdown, "no serviceAccountName in "+object.GetNamespace(),
		"%s names no service account, and Flux applies nothing with rights of its own: write spec.serviceAccountName, of one in %s that may apply what it holds",
		object.ID(), object.GetNamespace())
}
