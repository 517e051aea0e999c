package gitopscheck

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"

	"tazlab.net/castle/ci/gitops/gitopscheck/fluxtree"
	"tazlab.net/castle/ci/gitops/gitopscheck/manifests"
)

// templates are the fields that lead to a pod's spec, by the kinds that have one.
var templates = map[string][]string{
	"Pod": {}, "PodTemplate": {"template"},
	"Deployment": {"spec", "template"}, "StatefulSet": {"spec", "template"}, "DaemonSet": {"spec", "template"}, "ReplicaSet": {"spec", "template"},
	"ReplicationController": {"spec", "template"}, "Job": {"spec", "template"}, "CronJob": {"spec", "jobTemplate", "spec", "template"},
}

// podTemplate is the path to what an object has pods made of; nil: it has none.
func podTemplate(object *manifests.Object) []string {
	if !slices.Contains([]string{"", "apps", "batch"}, manifests.GroupOf(object.GetAPIVersion())) {
		return nil
	}
	if at, is := templates[object.GetKind()]; is {
		return append([]string{}, at...)
	}
	return nil
}

func (c *check) images() {
	for _, part := range c.parts() {
		for _, object := range part.objects {
			if object.Is(fluxtree.HelmGroup, fluxRelease) {
				c.imagesInValues(object, manifests.Map(object.Object, "spec", "values"), []string{"spec", "values"})
			}
			at := podTemplate(object)
			if at == nil {
				continue
			}
			for _, list := range []string{"initContainers", "containers", "ephemeralContainers"} {
				for i := range manifests.List(object.Object, append(slices.Clone(at), "spec", list)...) {
					field := append(slices.Clone(at), "spec", list, strconv.Itoa(i), "image")
					if image := manifests.Text(object.Object, field...); image != "" && !manifests.HasUnknown(image) {
						c.image(object, field, image)
					}
				}
			}
		}
	}
}

// image looks at one reference as a container runtime would.
func (c *check) image(object *manifests.Object, at []string, image string) {
	reference, err := name.ParseReference(image, name.WithDefaultTag(""))
	if err != nil {
		c.on(object, at, ruleImageTag, image, "%s: %q is no reference to an image: %v", object.ID(), image, err)
		return
	}
	tag, is := reference.(name.Tag)
	switch {
	case is && tag.TagStr() == "":
		c.on(object, at, ruleImageTag, image, "%s: %s has no tag, which means latest: write a tag or a digest", object.ID(), image)
	case is && tag.TagStr() == "latest":
		c.on(object, at, ruleImageTag, image, "%s: %s cannot be rolled back, and Kubernetes does not roll it out again: write a tag or a digest", object.ID(), image)
	}
}

// imagesInValues finds the tag latest in the values of a chart, beside a repository as charts usually have it.
func (c *check) imagesInValues(object *manifests.Object, values map[string]any, at []string) {
	for _, key := range slices.Sorted(maps.Keys(values)) {
		inner := manifests.Map(values[key])
		if inner == nil {
			continue
		}
		below := append(slices.Clone(at), key)
		if repository := manifests.Text(inner, "repository"); repository != "" && strings.EqualFold(manifests.Text(inner, "tag"), "latest") && manifests.Text(inner, "digest") == "" {
			c.on(object, append(slices.Clone(below), "tag"), ruleImageTag, repository, "%s: %s:latest cannot be rolled back, and Kubernetes does not roll it out again: write a tag or a digest", object.ID(), repository)
		}
		c.imagesInValues(object, inner, below)
	}
}
