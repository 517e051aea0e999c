package imagepush

import (
	"context"
	"fmt"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// Fetch returns an image by tag or digest, of an index the one for the platform. Its layers are read from the registry
// when they are asked for, as long as ctx lives; an error of these reads is the library's own. Errors: *NotFoundError
// and those of Push.
func Fetch(ctx context.Context, access Access, reference string, platform v1.Platform) (v1.Image, error) {
	ref, err := access.parse(reference)
	if err != nil {
		return nil, err
	}
	s, err := access.open(ref.Context())
	if err != nil {
		return nil, err
	}
	// The library's own repetitions, because the layers are read where ours cannot reach.
	image, err := remote.Image(ref, remote.WithContext(ctx), remote.WithPlatform(platform), remote.WithAuth(s.auth), remote.WithTransport(s.Transport))
	if isNotFound(err) {
		err = &NotFoundError{Reference: ref.Name()}
	}
	if err != nil {
		return nil, fmt.Errorf("pull %s: %w", reference, s.final(ctx, s.judge(err, "the pull"), err, "the pull", 1, 0))
	}
	return image, nil
}
