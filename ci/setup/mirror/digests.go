package mirror

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"tazlab.net/castle/ci/setup/images"
)

// Digests asks the registries of the images that have no digest in the list for it, and gives the list's text with these digests,
// each below its tag, and with every other line as it was. What it writes is what the tags point at now.
func Digests(ctx context.Context, list images.List, text string, keychain authn.Keychain) (string, error) {
	for _, image := range list {
		if image.Digest != "" {
			continue
		}
		digest, err := indexDigest(ctx, image, keychain)
		if err != nil {
			return "", fmt.Errorf("%s: %w", image.Reference(), err)
		}
		// The list's reader holds entries to this order of their fields.
		named := fmt.Sprintf("    image: %s\n    tag: %s\n", image.Name, image.Tag)
		if strings.Count(text, named) != 1 {
			return "", fmt.Errorf("the list has the lines of %s %d times, not once: write digest: %s below its tag", image.Reference(), strings.Count(text, named), digest)
		}
		text = strings.Replace(text, named, named+"    digest: "+digest+"\n", 1)
	}
	return text, nil
}

// indexDigest is the digest of what upstream has under the tag, for all platforms that the list expects of it.
func indexDigest(ctx context.Context, image images.Image, keychain authn.Keychain) (string, error) {
	reference, err := upstream(image)
	if err != nil {
		return "", err
	}
	found, err := remote.Get(reference, access(ctx, keychain)...)
	if err != nil {
		return "", explain(image.Registry(), err)
	}
	if !found.MediaType.IsIndex() {
		return "", fmt.Errorf("there is one image, and no index over %s", strings.Join(image.Platforms, ", "))
	}
	index, err := found.ImageIndex()
	if err != nil {
		return "", err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return "", err
	}
	platforms, err := platformsOf(image.Platforms)
	if err != nil {
		return "", err
	}
	if _, lacking := matching(manifest, platforms); lacking != nil {
		return "", lackError(lacking)
	}
	return found.Digest.String(), nil
}
