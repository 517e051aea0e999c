package main

import (
	_ "embed"
	"fmt"

	"go.yaml.in/yaml/v3"

	"dagger/castle/internal/dagger"
)

// list is part of the module, which therefore needs no file of who calls it.
//
//go:embed images.yaml
var list []byte

// localImages is the file, in castle's own source, that says what a mirror of
// this machine holds in place of these images. Git ignores it, and what Git
// ignores is not compiled into a module.
const localImages = ".dagger/images.local.yaml"

// releaseKey is that of castle's own image, which only releases have.
const releaseKey = "castle"

// release is castle's own image, with its programs, or nil where images.yaml
// names none.
func (m *Castle) release() (*dagger.Container, error) {
	entries, err := entries()
	if err != nil {
		return nil, err
	}
	entry, known := entries[releaseKey]
	if !known {
		return nil, nil
	}
	reference, err := m.reference(entry)
	if err != nil {
		return nil, err
	}
	return dag.Container().From(reference), nil
}

// image starts a container from the image of that key in images.yaml.
func (m *Castle) image(key string, platform dagger.Platform) (*dagger.Container, error) {
	entry, err := m.entry(key)
	if err != nil {
		return nil, err
	}
	return m.from(entry, platform)
}

// from starts a container from the image of an entry.
func (m *Castle) from(entry imageEntry, platform dagger.Platform) (*dagger.Container, error) {
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

// entries are those of images.yaml, by their keys.
func entries() (map[string]imageEntry, error) {
	var read struct{ Images []imageEntry }
	if err := yaml.Unmarshal(list, &read); err != nil {
		return nil, fmt.Errorf("images.yaml: %w", err)
	}
	entries := map[string]imageEntry{}
	for _, image := range read.Images {
		entries[image.Key] = image
	}
	return entries, nil
}

func (m *Castle) entry(key string) (imageEntry, error) {
	entries, err := entries()
	if err != nil {
		return imageEntry{}, err
	}
	if image, known := entries[key]; known {
		return image, nil
	}
	return imageEntry{}, fmt.Errorf("images.yaml has no entry with key %q", key)
}

// reference is what is pulled: the real image, or what images.local.yaml says
// that this machine's mirror holds in its place. A row of that file that was
// written for another image, tag or digest is none for this one.
func (m *Castle) reference(entry imageEntry) (string, error) {
	local, err := m.local()
	if err != nil {
		return "", err
	}
	if row := local[entry.Key]; row.For == entry.pinned() && row.Digest != "" {
		return entry.named() + "@" + row.Digest, nil
	}
	return entry.pinned(), nil
}

// localRow says what stands for an image on this machine's mirror.
type localRow struct{ For, Digest string }

func (m *Castle) local() (map[string]localRow, error) {
	var rows map[string]localRow
	if err := yaml.Unmarshal([]byte(m.LocalImages), &rows); err != nil {
		return nil, fmt.Errorf("%s: %w", localImages, err)
	}
	return rows, nil
}

// hasLocal says whether this machine's mirror has something of its own in the
// place of an image.
func (m *Castle) hasLocal(key string) (bool, error) {
	rows, err := m.local()
	return rows[key].Digest != "", err
}
