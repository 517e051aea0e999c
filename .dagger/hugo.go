package main

import (
	"context"
	"fmt"
	"strings"

	"dagger/castle/internal/dagger"
)

// hugoVersion is a version of Hugo, three numbers, and who asks for it.
type hugoVersion struct {
	Version string `json:"version"`
	From    string `json:"from"`
}

// versionOf is the version that an entry's tag names.
func versionOf(entry imageEntry) string { return strings.TrimPrefix(entry.Tag, "v") }

// hugoEntry is the image of a version: that of images.yaml, with its digest, or
// another release in the same repository, of which no digest is known.
func (m *Castle) hugoEntry(hugo hugoVersion) (imageEntry, error) {
	entry, err := m.entry("hugo")
	if err == nil && versionOf(entry) != hugo.Version {
		entry.Tag, entry.Digest = "v"+hugo.Version, ""
	}
	return entry, err
}

// hugoImage starts from the image of a version; name is the image's, with its
// digest. Who asked for an image that cannot be had is told here, where the
// registry is asked for it.
func (m *Castle) hugoImage(ctx context.Context, hugo hugoVersion) (image *dagger.Container, name string, err error) {
	entry, err := m.hugoEntry(hugo)
	if err != nil {
		return nil, "", err
	}
	image, err = m.from(entry, "")
	if err != nil {
		return nil, "", err
	}
	if name, err = image.ImageRef(ctx); err != nil {
		return nil, "", m.notPulled(entry, hugo, err)
	}
	return image, name, nil
}

// notPulled says who asked for an image of Hugo that cannot be had, and what to do about it.
func (m *Castle) notPulled(wanted imageEntry, hugo hugoVersion, err error) error {
	what := "cannot be pulled"
	if strings.Contains(err.Error(), "not found") {
		what = "was not found"
	}
	said := fmt.Sprintf("the image %s %s, and Hugo %s is what %s asks for", wanted.named(), what, hugo.Version, hugo.From)
	if ours, missing := m.entry("hugo"); missing == nil && ours != wanted {
		said += fmt.Sprintf("; write hugo: %s for the site in castle.yaml, or give --hugo %[1]s, or any other version that is there", versionOf(ours))
	}
	return fmt.Errorf("%s: %w", said, err)
}
