package imagepush

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// Lookup returns the digest ("sha256:…") of an image that is named by tag or digest. Errors: *NotFoundError and those
// of Push.
func Lookup(ctx context.Context, access Access, reference string) (string, error) {
	ref, err := access.parse(reference)
	if err != nil {
		return "", err
	}
	s, err := access.open(ref.Context())
	if err != nil {
		return "", err
	}
	defer s.done()
	ctx, cancel := context.WithTimeoutCause(ctx, s.Timeout, errTimeout)
	defer cancel()
	digest, err := s.resolve(ctx, ref)
	if err != nil {
		return "", fmt.Errorf("look up %s: %w", reference, err)
	}
	return digest.String(), nil
}

func (s *session) resolve(ctx context.Context, ref name.Reference) (digest v1.Hash, err error) {
	err = s.retry(ctx, "look at "+ref.Identifier(), 0, func(ctx context.Context) (err error) {
		digest, err = s.head(ctx, ref)
		if isNotFound(err) {
			return &NotFoundError{Reference: ref.Name()}
		}
		return err
	})
	return digest, err
}

// head asks for a manifest's digest without pulling it, because Docker Hub counts pulls. The few registries that leave
// the digest out of the answer are asked for the manifest.
func (s *session) head(ctx context.Context, ref name.Reference) (v1.Hash, error) {
	head, err := s.puller.Head(ctx, ref)
	if err == nil {
		return head.Digest, nil
	}
	if !strings.Contains(err.Error(), "did not include Docker-Content-Digest") {
		return v1.Hash{}, err
	}
	got, err := s.puller.Get(ctx, ref)
	if err != nil {
		return v1.Hash{}, err
	}
	return got.Digest, nil
}

func isNotFound(err error) bool {
	var answer *transport.Error
	return errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound
}
