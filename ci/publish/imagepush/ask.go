package imagepush

import (
	"context"
	"fmt"
	"net/http"
	"net/url"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// Ask looks whether the registry of an image answers and, where the access has a password, whether that may push to the image's
// repository: an upload is begun for it, as few registries tell otherwise, and given up. Errors: those of Push.
func Ask(ctx context.Context, access Access, image string) error {
	ref, err := access.parse(image)
	if err != nil {
		return err
	}
	s, err := access.open(ref.Context())
	if err != nil {
		return err
	}
	defer s.done()
	ctx, cancel := context.WithTimeoutCause(ctx, s.Timeout, errTimeout)
	defer cancel()
	err = s.retry(ctx, "the question whether it may be used", 0, func(ctx context.Context) error {
		if s.Password == "" {
			_, err := transport.Ping(ctx, s.repository.Registry, &throttle{s.Transport})
			return err
		}
		return s.beginUpload(ctx)
	})
	if err != nil {
		return fmt.Errorf("ask for %s: %w", image, err)
	}
	return nil
}

// beginUpload begins one, and gives it up. The library's CheckPushPermission does that without a context, and leaves the end to
// whoever runs on after it.
func (s *session) beginUpload(ctx context.Context) error {
	repository := s.repository
	authorized, err := transport.NewWithContext(ctx, repository.Registry, s.auth, &throttle{s.Transport}, []string{repository.Scope(transport.PushScope)})
	if err != nil {
		return err
	}
	client := &http.Client{Transport: authorized}
	uploads := &url.URL{Scheme: repository.Scheme(), Host: repository.RegistryStr(), Path: "/v2/" + repository.RepositoryStr() + "/blobs/uploads/"}
	begun, err := send(ctx, client, http.MethodPost, uploads)
	if err != nil {
		return err
	}
	if err := transport.CheckError(begun, http.StatusAccepted, http.StatusCreated); err != nil {
		return err
	}
	if upload, err := uploads.Parse(begun.Header.Get("Location")); err == nil && begun.Header.Get("Location") != "" {
		_, _ = send(ctx, client, http.MethodDelete, upload) // a registry forgets by itself what nobody goes on with
	}
	return nil
}

// send sends a request without a body; of the answer nothing but its head and, where it is an error, its text is read.
func send(ctx context.Context, client *http.Client, method string, to *url.URL) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, method, to.String(), nil)
	if err != nil {
		return nil, err
	}
	answer, err := client.Do(request)
	if err == nil && answer.StatusCode < 300 {
		err = answer.Body.Close()
	}
	return answer, err
}
