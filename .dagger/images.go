package main

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"dagger/castle/internal/dagger"
)

// image starts a container from the image of that key in images.yaml.
func (m *Castle) image(key string, platform dagger.Platform) (*dagger.Container, error) {
	entry, err := m.entry(key)
	if err != nil {
		return nil, err
	}
	reference, err := m.reference(entry)
	if err != nil {
		return nil, err
	}
	return dag.Container(dagger.ContainerOpts{Platform: platform}).From(reference), nil
}

// imageEntry is what is read of an entry of images.yaml here: castle's program,
// which reads and checks the rest, needs an image to be compiled in.
type imageEntry struct{ Key, Image, Tag, Digest string }

// named is the image's name and tag.
func (e imageEntry) named() string { return e.Image + ":" + e.Tag }

// pinned is the real image: name, tag and digest, where the digest is known.
func (e imageEntry) pinned() string {
	if e.Digest == "" {
		return e.named()
	}
	return e.named() + "@" + e.Digest
}

func (m *Castle) entry(key string) (imageEntry, error) {
	var list struct{ Images []imageEntry }
	if err := yaml.Unmarshal([]byte(m.Images), &list); err != nil {
		return imageEntry{}, fmt.Errorf("images.yaml: %w", err)
	}
	for _, image := range list.Images {
		if image.Key == key {
			return image, nil
		}
	}
	return imageEntry{}, fmt.Errorf("images.yaml has no entry with key %q", key)
}

// reference is what is pulled: the real image, or what images.local.yaml says
// that this machine's mirror holds in its place. A row of that file that was
// written for another image, tag or digest is none for this one.
func (m *Castle) reference(entry imageEntry) (string, error) {
	var local map[string]struct{ For, Digest string }
	if err := yaml.Unmarshal([]byte(m.LocalImages), &local); err != nil {
		return "", fmt.Errorf("%s: %w", localImagesFile, err)
	}
	if row := local[entry.Key]; row.For == entry.pinned() && row.Digest != "" {
		return entry.named() + "@" + row.Digest, nil
	}
	return entry.pinned(), nil
}
