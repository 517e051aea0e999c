package mirror

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"tazlab.net/castle/ci/setup/images"
)

// SyncOptions say what to copy and where.
type SyncOptions struct {
	List images.List
	// To is the registry, with a path below which the copies go or without: "registry.example.com/mirror". Docker Hub's
	// library/golang becomes registry.example.com/mirror/library/golang.
	To string
	// Platforms are copied and no others, which makes an index of another digest than upstream's; nil: all that upstream has.
	Platforms []string
	// Keychain has the credentials of all registries concerned; nil means those of docker login.
	Keychain authn.Keychain
	Log      io.Writer // progress, a line per image; nil discards it
}

// Synced tells of one image of the list.
type Synced struct {
	Image  images.Image
	Target string // where it is now, with the tag
	Digest string // of the copy, "sha256:…"
	Copied bool   // false: the same was there already
}

// Sync copies the real images of the list from their registries. Where the list has a digest, exactly that is copied,
// even if the tag has moved on, and found under that digest. A copy with fewer platforms than its upstream has another
// digest; it names upstream's in AnnotationSource. An image without the platforms of its entry is not copied. What is
// there already is not copied again. All images are tried; the error joins what went wrong.
func Sync(ctx context.Context, opts SyncOptions) ([]Synced, error) {
	to, err := parseAddress(opts.To)
	if err != nil {
		return nil, fmt.Errorf("mirror %q: %w", opts.To, err)
	}
	if err := distinct(opts.List); err != nil {
		return nil, err
	}
	var done []Synced
	var failed []error
	for _, image := range opts.List {
		synced, err := copyImage(ctx, opts, to, image)
		if ctx.Err() != nil {
			return done, fmt.Errorf("copy %s: %w", image.Reference(), context.Cause(ctx))
		}
		if err != nil {
			failed = append(failed, fmt.Errorf("copy %s: %w", image.Reference(), err))
			continue
		}
		verb := "has already"
		if synced.Copied {
			verb = "copied"
		}
		say(opts.Log, "%s %s %s", synced.Target, verb, synced.Digest)
		done = append(done, synced)
	}
	return done, errors.Join(failed...)
}

// taggable is an image or an index.
type taggable interface {
	partial.WithRawManifest
	Digest() (v1.Hash, error)
}

func copyImage(ctx context.Context, opts SyncOptions, to address, image images.Image) (Synced, error) {
	target, err := to.tag(image)
	if err != nil {
		return Synced{}, err
	}
	wanted := opts.Platforms
	if len(wanted) == 0 {
		wanted = image.Platforms
	}
	platforms, err := platformsOf(wanted)
	if err != nil {
		return Synced{}, err
	}
	source, err := upstream(image)
	if err != nil {
		return Synced{}, err
	}
	options := access(ctx, opts.Keychain)
	descriptor, err := remote.Get(source, options...)
	if err != nil {
		return Synced{}, explain(image.Registry(), err)
	}
	what, err := selected(descriptor, platforms, len(opts.Platforms) == 0)
	if err != nil {
		return Synced{}, fmt.Errorf("%s: %w", source, err)
	}
	digest, err := what.Digest()
	if err != nil {
		return Synced{}, err
	}
	synced := Synced{Image: image, Target: target.Name(), Digest: digest.String()}
	switch there, err := remote.Head(target, options...); {
	case err == nil && there.Digest == digest:
		return synced, nil
	case err != nil && !notFound(err):
		return Synced{}, explain(to.host, err)
	}
	switch what := what.(type) {
	case v1.ImageIndex:
		err = remote.WriteIndex(target, what, options...)
	case v1.Image:
		err = remote.Write(target, what, options...)
	}
	if err != nil {
		return Synced{}, explain(to.host, err)
	}
	synced.Copied = true
	return synced, nil
}

// upstream is the real image: by digest where the list has one.
func upstream(image images.Image) (name.Reference, error) {
	if image.Digest != "" {
		return name.NewDigest(image.Name+"@"+image.Digest, name.StrictValidation)
	}
	return name.NewTag(image.Reference(), name.StrictValidation)
}

// selected is what is copied of upstream, which must have these platforms: the image, the whole index, or the index of
// these platforms.
func selected(descriptor *remote.Descriptor, platforms []v1.Platform, whole bool) (taggable, error) {
	if !descriptor.MediaType.IsIndex() {
		image, err := descriptor.Image()
		if err != nil {
			return nil, err
		}
		one, err := platformOf(image)
		if err != nil {
			return nil, err
		}
		if lacking := others(one, platforms); len(lacking) > 0 {
			return nil, lackError(lacking)
		}
		return image, nil
	}
	index, err := descriptor.ImageIndex()
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	found, lacking := matching(manifest, platforms)
	if len(lacking) > 0 {
		return nil, lackError(lacking)
	}
	kept := func(d v1.Descriptor) bool {
		return slices.ContainsFunc(found, func(f v1.Descriptor) bool { return f.Digest == d.Digest })
	}
	if whole || !slices.ContainsFunc(manifest.Manifests, func(d v1.Descriptor) bool { return !kept(d) }) {
		return index, nil
	}
	some := mutate.RemoveManifests(index, func(d v1.Descriptor) bool { return !kept(d) })
	// Docker's older format of an index has no annotations.
	some = mutate.IndexMediaType(some, types.OCIImageIndex)
	return mutate.Annotations(some, map[string]string{AnnotationSource: descriptor.Digest.String()}).(v1.ImageIndex), nil
}
