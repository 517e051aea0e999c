package kube

import (
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// HasImage looks for an image under any of the names that a container runtime takes for the same one.
func HasImage(images []string, image string) bool {
	wanted := canonical(image)
	return slices.ContainsFunc(images, func(has string) bool { return has == image || canonical(has) == wanted })
}

// HasRepository looks for an image of the repository, whatever its tag and digest.
func HasRepository(images []string, repository string) bool {
	wanted, err := name.NewRepository(repository)
	return err == nil && slices.ContainsFunc(images, func(has string) bool {
		reference, err := name.ParseReference(has)
		return err == nil && reference.Context() == wanted
	})
}

// canonical is an image's full name, with the registry that a short one leaves out; what is no name stays as it is.
func canonical(image string) string {
	reference, err := name.ParseReference(image)
	if err != nil {
		return image
	}
	return reference.Name()
}

// Images are those of a workload's containers, as its manifest names them.
func Images(workload *unstructured.Unstructured) []string {
	containers, _, _ := unstructured.NestedSlice(workload.Object, "spec", "template", "spec", "containers")
	var images []string
	for _, container := range containers {
		if container, ok := container.(map[string]any); ok {
			image, _ := container["image"].(string)
			images = append(images, image)
		}
	}
	return images
}
