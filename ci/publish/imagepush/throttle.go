package imagepush

import (
	"net/http"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"

	"tazlab.net/castle/ci/base/retry"
)

// throttle turns an answer that says when to come back into an error that carries the time. The library's own error for
// such an answer has lost the header.
type throttle struct{ next http.RoundTripper }

func (t *throttle) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(r)
	if err != nil || resp.StatusCode != http.StatusTooManyRequests && resp.StatusCode != http.StatusServiceUnavailable {
		return resp, err
	}
	after, ok := retry.ParseAfter(resp.Header.Get("Retry-After"), time.Now())
	if !ok {
		return resp, nil
	}
	defer resp.Body.Close()
	return nil, &throttledError{resp.StatusCode, after, transport.CheckError(resp)}
}

type throttledError struct {
	status int
	after  time.Duration
	answer error // what the registry said, a *transport.Error where its body could be read
}

func (e *throttledError) Error() string { return e.answer.Error() }

// Unwrap also tells package backoff how long to pause.
func (e *throttledError) Unwrap() []error {
	return []error{e.answer, &backoff.RetryAfterError{Duration: e.after}}
}
