package imagepush

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Attachment is what stands beside an image: one layer of an image of its own, whose tag is made of the digest and a suffix. It is
// where cosign keeps signatures and attestations, and unlike a published tag, that tag moves with each one that is added.
type Attachment struct {
	MediaType   string
	Content     []byte
	Annotations map[string]string // of the layer
}

func (a Attachment) equal(b Attachment) bool {
	return a.MediaType == b.MediaType && string(a.Content) == string(b.Content) && maps.Equal(a.Annotations, b.Annotations)
}

// Bounds of what somebody else may have put there.
const (
	mostAttachments    = 100
	largestAttachments = 64 << 20 // bytes, all of one tag together
)

// Attachments are those of an image that is named by its digest, none where it has none. Errors are those of Push.
func Attachments(ctx context.Context, access Access, image, suffix string) ([]Attachment, error) {
	s, tag, err := access.beside(image, suffix)
	if err != nil {
		return nil, err
	}
	defer s.done()
	ctx, cancel := context.WithTimeoutCause(ctx, s.Timeout, errTimeout)
	defer cancel()
	found, err := s.attachments(ctx, tag)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", tag.Name(), err)
	}
	return found, nil
}

// Attach adds one to an image that is named by its digest, unless it is there, and returns when the registry has it. Errors are
// those of Push.
func Attach(ctx context.Context, access Access, image, suffix string, added Attachment) error {
	s, tag, err := access.beside(image, suffix)
	if err != nil {
		return err
	}
	defer s.done()
	ctx, cancel := context.WithTimeoutCause(ctx, s.Timeout, errTimeout)
	defer cancel()
	if err := s.attach(ctx, tag, added); err != nil {
		return fmt.Errorf("push %s: %w", tag.Name(), err)
	}
	return nil
}

// ParseDigest reads a reference to an image by its digest.
func (a Access) ParseDigest(image string) (name.Digest, error) {
	ref, err := a.parse(image)
	if err != nil {
		return name.Digest{}, err
	}
	digest, ok := ref.(name.Digest)
	if !ok {
		return name.Digest{}, fmt.Errorf("image reference %q has no digest", image)
	}
	return digest, nil
}

// beside opens the repository and names the tag: sha256-….sig for sha256:… and .sig.
func (a Access) beside(image, suffix string) (*session, name.Tag, error) {
	digest, err := a.ParseDigest(image)
	if err != nil {
		return nil, name.Tag{}, err
	}
	s, err := a.open(digest.Context())
	return s, digest.Context().Tag(strings.Replace(digest.DigestStr(), ":", "-", 1) + suffix), err
}

func (s *session) attachments(ctx context.Context, tag name.Tag) (found []Attachment, err error) {
	err = s.retry(ctx, "read "+tag.TagStr(), 0, func(ctx context.Context) (err error) {
		found, err = s.read(ctx, tag)
		return err
	})
	return found, err
}

// errForeign: a tag of attachments holds something else.
var errForeign = errors.New("holds no attachments")

func (s *session) read(ctx context.Context, tag name.Tag) ([]Attachment, error) {
	got, err := s.puller.Get(ctx, tag)
	if isNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !got.MediaType.IsImage() {
		return nil, fmt.Errorf("%s %w: it is %s", tag.TagStr(), errForeign, got.MediaType)
	}
	image, err := got.Image()
	if err != nil {
		return nil, err
	}
	manifest, err := image.Manifest()
	if err != nil {
		return nil, fmt.Errorf("%s %w: %w", tag.TagStr(), errForeign, err)
	}
	total := int64(0)
	for _, layer := range manifest.Layers {
		total += layer.Size
	}
	if len(manifest.Layers) > mostAttachments || total > largestAttachments || total < 0 {
		return nil, fmt.Errorf("%s %w: %d layers of %d bytes", tag.TagStr(), errForeign, len(manifest.Layers), total)
	}
	var found []Attachment
	for _, described := range manifest.Layers {
		layer, err := image.LayerByDigest(described.Digest)
		if err != nil {
			return nil, err
		}
		content, err := readBlob(layer, described.Size)
		if err != nil {
			return nil, err
		}
		found = append(found, Attachment{string(described.MediaType), content, described.Annotations})
	}
	return found, nil
}

// readBlob reads a blob; the library compares it with its digest.
func readBlob(layer v1.Layer, size int64) ([]byte, error) {
	blob, err := layer.Compressed()
	if err != nil {
		return nil, err
	}
	defer blob.Close()
	return io.ReadAll(io.LimitReader(blob, size+1))
}

// attach puts what is there and the new one under the tag, and reads it back: somebody else who does the same at the same moment
// would otherwise have taken ours away. That ours takes nothing away from others, a look between the upload and the tag makes all but
// sure: a registry knows no "put if unchanged".
func (s *session) attach(ctx context.Context, tag name.Tag, added Attachment) error {
	began := time.Now()
	for range mostAtOnce {
		there, err := s.attachments(ctx, tag)
		if err != nil {
			return err
		}
		if slices.ContainsFunc(there, added.equal) {
			return nil
		}
		image, err := s.uploadAttachments(ctx, append(slices.Clone(there), added))
		if err != nil {
			return err
		}
		now, err := s.attachments(ctx, tag)
		if err != nil {
			return err
		}
		if !slices.EqualFunc(there, now, Attachment.equal) {
			continue
		}
		if err := s.put(ctx, tag, image); err != nil {
			return err
		}
	}
	there, err := s.attachments(ctx, tag)
	if err == nil && !slices.ContainsFunc(there, added.equal) {
		err = &UnavailableError{s.repository.RegistryStr(), tag.TagStr(), mostAtOnce, "others write it at the same time, or the registry does not keep it", time.Since(began)}
	}
	return err
}

// uploadAttachments makes the image that holds them, and uploads all of it but its manifest.
func (s *session) uploadAttachments(ctx context.Context, all []Attachment) (image v1.Image, err error) {
	image = mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	for _, one := range all {
		if image, err = mutate.Append(image, mutate.Addendum{
			Layer: static.NewLayer(one.Content, types.MediaType(one.MediaType)), Annotations: one.Annotations,
		}); err != nil {
			return nil, err
		}
	}
	tree, err := flatten(image)
	if err != nil {
		return nil, err
	}
	_, _, err = s.upload(ctx, tree.blobs)
	return image, err
}
