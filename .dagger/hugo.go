package main

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"dagger/castle/internal/dagger"
)

// hugoVersion is a version of Hugo, three numbers, and who asks for it.
type hugoVersion struct {
	Version string `json:"version"`
	From    string `json:"from"`
	// Digest is that of its image, where who asks for it says so.
	Digest string `json:"-"`
}

// hugoDigests are those of images of other versions than castle's own.
//
//go:embed hugo.yaml
var hugoDigests []byte

// versionOf is the version that an entry's tag names.
func versionOf(entry imageEntry) string { return strings.TrimPrefix(entry.Tag, "v") }

// hugoEntry is the image of a version: that of images.yaml, with its digest, or
// another release in the same repository, with the digest that who asks for it
// says, or castle's list has, or none.
func (m *Castle) hugoEntry(hugo hugoVersion) (imageEntry, error) {
	entry, err := m.entry("hugo")
	if err != nil {
		return entry, err
	}
	if versionOf(entry) != hugo.Version {
		var known map[string]string
		if err := yaml.Unmarshal(hugoDigests, &known); err != nil {
			return entry, fmt.Errorf("hugo.yaml: %w", err)
		}
		entry.Tag, entry.Digest = "v"+hugo.Version, known[hugo.Version]
	}
	if hugo.Digest != "" {
		entry.Digest = hugo.Digest
	}
	return entry, nil
}

// pinnedHugo refuses an image that nothing says what it should be: it builds what
// is published. Where this machine's mirror has a stand-in of Hugo, the others
// that it has were built from Go modules as well.
func (m *Castle) pinnedHugo(entry imageEntry, hugo hugoVersion) error {
	if entry.Digest != "" || m.AllowUnpinned {
		return nil
	}
	if has, err := m.hasLocal(entry.Key); has || err != nil {
		return err
	}
	return fmt.Errorf("nothing says what the image %s should be, and %s asks for Hugo %s: write its digest behind the version for the site in castle.yaml, "+
		"as dagger call pin-hugo --version %[3]s prints it, or accept for this call what comes with dagger call --allow-unpinned …", entry.named(), hugo.From, hugo.Version)
}

// PinHugo is the line for a site in castle.yaml that names a version of Hugo with
// the digest that its image has now: hugo: 0.148.1@sha256:…. From then on nothing
// else builds the site. Call it from a network that you trust.
//
// +cache="never"
func (m *Castle) PinHugo(
	ctx context.Context,
	// The version of Hugo, such as 0.148.1.
	version string,
) (string, error) {
	entry, err := m.hugoEntry(hugoVersion{Version: version})
	if err != nil {
		return "", err
	}
	if entry.Digest == "" {
		image, err := m.from(entry, "")
		if err != nil {
			return "", err
		}
		name, err := image.ImageRef(ctx)
		if err != nil {
			return "", m.notPulled(entry, hugoVersion{Version: version, From: "--version"}, err)
		}
		_, entry.Digest, _ = strings.Cut(name, "@")
	}
	return fmt.Sprintf("hugo: %s@%s\n", version, entry.Digest), nil
}

// hugoImage starts from the image of a version; name is the image's, with its
// digest. Who asked for an image that cannot be had is told here, where the
// registry is asked for it.
func (m *Castle) hugoImage(ctx context.Context, hugo hugoVersion) (image *dagger.Container, name string, err error) {
	entry, err := m.hugoEntry(hugo)
	if err != nil {
		return nil, "", err
	}
	if err := m.pinnedHugo(entry, hugo); err != nil {
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
