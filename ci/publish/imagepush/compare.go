package imagepush

import (
	"context"
	"errors"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"

	"tazlab.net/castle/ci/publish/inputs"
	"tazlab.net/castle/ci/publish/siteimage/ocilayout"
)

// compare reports whether the tag is the artifact already, and the digest that it has then: the artifact's own, or
// that of an image which counts as the same (see same). Anything else under the tag is a *TagConflictError.
func (s *session) compare(ctx context.Context, tag name.Tag, artifact ocilayout.Artifact) (have v1.Hash, there bool, err error) {
	have, err = s.resolve(ctx, tag)
	var missing *NotFoundError
	if errors.As(err, &missing) {
		return v1.Hash{}, false, nil
	}
	if err != nil {
		return v1.Hash{}, false, err
	}
	return have, true, s.same(ctx, tag, have, artifact)
}

// confirm reads the tag back and returns its digest. Somebody else may have put the same tag at the same moment; and a registry
// of several machines may show a tag a moment after it took it.
func (s *session) confirm(ctx context.Context, tag name.Tag, artifact ocilayout.Artifact) (have v1.Hash, err error) {
	err = s.retry(ctx, "confirmation of "+tag.TagStr(), 0, func(ctx context.Context) (err error) {
		have, err = s.head(ctx, tag)
		if isNotFound(err) {
			return errNotYet
		}
		return err
	})
	if err != nil {
		return v1.Hash{}, err
	}
	err = s.same(ctx, tag, have, artifact)
	var conflict *TagConflictError
	if errors.As(err, &conflict) {
		conflict.Raced = true
	}
	return have, err
}

// same returns a *TagConflictError unless the digest is the artifact's, or that of another image which was made from
// the same inputs. That an image was, its annotation says, and whoever may push can write that. So either its content
// has to be the artifact's, or somebody else than the registry has to know the image.
func (s *session) same(ctx context.Context, tag name.Tag, have v1.Hash, artifact ocilayout.Artifact) error {
	want, err := artifact.Digest()
	if err != nil || have == want {
		return err
	}
	own, err := artifact.RawManifest()
	if err != nil {
		return err
	}
	theirs, err := s.manifest(ctx, tag.Context().Digest(have.String()))
	if err != nil {
		return err
	}
	conflict := &TagConflictError{Reference: tag.Name(), Want: want.String(), Have: have.String()}
	if now, was := inputs.OfManifest(own), inputs.OfManifest(theirs); !now.Same(was) {
		conflict.Differences = now.Differences(was)
		return conflict
	}
	difference, err := s.difference(ctx, theirs, artifact)
	if err != nil || difference == "" {
		return err
	}
	if s.known != nil {
		if known, err := s.known(ctx, tag.TagStr(), have.String()); err != nil || known {
			return err
		}
	}
	conflict.Differences, conflict.Unknown = []string{difference}, true
	return conflict
}

// manifest pulls a manifest, which Docker Hub counts as a pull: it is asked for only where the digests differ.
func (s *session) manifest(ctx context.Context, ref name.Digest) (manifest []byte, err error) {
	err = s.retry(ctx, "manifest "+ref.DigestStr(), 0, func(ctx context.Context) error {
		got, err := s.puller.Get(ctx, ref)
		if err == nil {
			manifest = got.Manifest
		}
		return err
	})
	return manifest, err
}
