package main

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"dagger/castle/internal/dagger"
)

// Image is one entry of images.yaml.
type Image struct {
	// +private
	Key string
	// +private
	Reference string
}

// parseImages reads images.yaml. Its mistakes are reported by `castle mirror
// verify` and by the tests; here a missing entry is enough.
func parseImages(text string) ([]Image, error) {
	var list struct {
		Images []struct {
			Key   string `yaml:"key"`
			Image string `yaml:"image"`
			Tag   string `yaml:"tag"`
		} `yaml:"images"`
	}
	if err := yaml.Unmarshal([]byte(text), &list); err != nil {
		return nil, fmt.Errorf("images.yaml: %w", err)
	}
	images := make([]Image, len(list.Images))
	for i, image := range list.Images {
		images[i] = Image{Key: image.Key, Reference: image.Image + ":" + image.Tag}
	}
	return images, nil
}

// image starts a container from the image of that key.
func (m *Castle) image(key string, platform dagger.Platform) (*dagger.Container, error) {
	reference := m.reference(key)
	if reference == "" {
		return nil, fmt.Errorf("images.yaml has no entry with key %q", key)
	}
	return dag.Container(dagger.ContainerOpts{Platform: platform}).From(reference), nil
}

// reference is the name and tag of the image of that key, empty when
// images.yaml has none.
func (m *Castle) reference(key string) string {
	for _, image := range m.Images {
		if image.Key == key {
			return image.Reference
		}
	}
	return ""
}
