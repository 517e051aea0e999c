package main

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"dagger/castle/internal/dagger"
)

// image starts a container from the image of that key in images.yaml.
func (m *Castle) image(key string, platform dagger.Platform) (*dagger.Container, error) {
	reference, err := m.reference(key)
	if err != nil {
		return nil, err
	}
	return dag.Container(dagger.ContainerOpts{Platform: platform}).From(reference), nil
}

// reference is the name and tag of the image of that key in images.yaml. It is
// all that is read of that file here, since castle's program, which reads and
// checks the rest, needs an image to be compiled in.
func (m *Castle) reference(key string) (string, error) {
	var list struct {
		Images []struct{ Key, Image, Tag string }
	}
	if err := yaml.Unmarshal([]byte(m.Images), &list); err != nil {
		return "", fmt.Errorf("images.yaml: %w", err)
	}
	for _, image := range list.Images {
		if image.Key == key {
			return image.Image + ":" + image.Tag, nil
		}
	}
	return "", fmt.Errorf("images.yaml has no entry with key %q", key)
}
