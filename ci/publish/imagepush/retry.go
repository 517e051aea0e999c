package imagepush

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"time"

	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"tazlab.net/castle/ci/base/retry"
	"tazlab.net/castle/ci/base/tracing"
)

const (
	longestPause = 15 * time.Second
	longestAfter = 2 * time.Minute // a Retry-After beyond it is an error: nobody watches a build sleep for hours
	slowestLine  = 128 << 10       // bytes per second that an attempt's time allows for
)

var (
	errTimeout = errors.New("the time for the whole push is over")
	errNotYet  = errors.New("the registry does not show the tag yet")
)

// retry does one step until it succeeds, cannot succeed, or was tried often enough. size is how many bytes it may send.
func (s *session) retry(ctx context.Context, doing string, size int64, step func(context.Context) error) error {
	attempts := 0
	var last error
	var began time.Time // of the trouble: the first failure
	ctx, span := tracing.Begin(ctx, doing)
	once := func() error {
		attempts++
		most := s.Attempt
		if !began.IsZero() {
			most = min(most, max(time.Until(began.Add(s.RetryFor)), time.Second))
		}
		attempt, cancel := context.WithTimeout(ctx, most+time.Duration(size/slowestLine)*time.Second)
		defer cancel()
		err := step(attempt)
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil { // an attempt that the deadline cut short says less than the one before it
			last = err
		}
		if began.IsZero() {
			began = time.Now()
		}
		return s.judge(err, doing)
	}
	pauses := retry.Growing(s.Pause, longestPause)
	pauses.Multiplier = 2
	err := retry.Policy{Doing: doing, Pauses: pauses, Tries: uint(s.Tries), For: s.RetryFor, Seen: func(err error) string {
		seen := s.detail(err)
		span.AddEvent("again", trace.WithAttributes(attribute.String("castle.seen", seen)))
		return seen
	}}.Do(ctx, once)
	s.mu.Lock()
	s.attempts = max(s.attempts, attempts)
	s.mu.Unlock()

	if err != nil {
		err = s.final(ctx, err, last, doing, attempts, time.Since(began))
	}
	span.SetAttributes(attribute.Int("castle.attempts", attempts))
	if _, missing := errors.AsType[*NotFoundError](err); missing {
		tracing.End(span, nil) // an answer: who looks at a tag before a push hopes for it
	} else {
		tracing.End(span, err)
	}
	return err
}

// final turns what judge said of the last attempt's error into what the caller gets.
func (s *session) final(ctx context.Context, judged, last error, doing string, attempts int, took time.Duration) error {
	switch {
	case ctx.Err() != nil && !errors.Is(context.Cause(ctx), errTimeout):
		return context.Cause(ctx) // another step failed, or the caller gave up
	case ctx.Err() != nil || isRepeatable(judged):
		return &UnavailableError{s.repository.RegistryStr(), doing, attempts, s.detail(last), took}
	}
	return judged
}

// repeatable marks an error that another attempt may mend.
type repeatable struct{ error }

func (r repeatable) Unwrap() error { return r.error }

func isRepeatable(err error) bool {
	var r repeatable
	return errors.As(err, &r)
}

// judge splits errors: what comes back repeatable is tried again, everything else is final and of our own types.
func (s *session) judge(err error, doing string) error {
	registry := s.repository.RegistryStr()
	refused := func(status int, detail string) error {
		return retry.Permanent(&RefusedError{registry, doing, status, detail})
	}
	var missing *NotFoundError
	var throttled *throttledError
	var answer *transport.Error
	switch {
	case errors.As(err, &missing):
		return retry.Permanent(missing)
	case errors.As(err, &throttled):
		if throttled.after > longestAfter {
			return refused(throttled.status, fmt.Sprintf("%s; it asks to come back in %s", s.detail(err), throttled.after))
		}
		return repeatable{err}
	case errors.As(err, &answer):
		switch status := answer.StatusCode; {
		case status == http.StatusUnauthorized || status == http.StatusForbidden:
			anonymous := s.Username == "" && s.Password == ""
			return retry.Permanent(&AuthError{registry, s.repository.RepositoryStr(), status, anonymous, s.detail(err)})
		case passingStatus[status] || lostUpload(answer):
			return repeatable{err}
		default:
			return refused(status, s.detail(err))
		}
	case errors.Is(err, errNotYet) || isPassing(err):
		return repeatable{err}
	case errors.Is(err, errInClear):
		return refused(0, errInClear.Error())
	case errors.Is(err, http.ErrSchemeMismatch):
		return refused(0, "it speaks HTTP, not HTTPS; if that is meant, name it among the plain HTTP registries")
	case isNetwork(err) && !isMisconfigured(err):
		return repeatable{err}
	default:
		return refused(0, s.detail(err))
	}
}

// Answers that say "not now" rather than "no".
var passingStatus = map[int]bool{
	http.StatusRequestTimeout: true, http.StatusTooManyRequests: true, http.StatusInternalServerError: true, http.StatusBadGateway: true,
	http.StatusServiceUnavailable: true, http.StatusGatewayTimeout: true,
	499: true, // nginx: the client closed the request
	522: true, // Cloudflare: connection timed out
}

// lostUpload: the registry forgot an upload, or stands at another byte of it than we do. The next attempt starts anew.
func lostUpload(answer *transport.Error) bool {
	for _, d := range answer.Errors {
		if d.Code == transport.BlobUploadUnknownErrorCode || d.Code == transport.BlobUploadInvalidErrorCode {
			return true
		}
	}
	return answer.StatusCode == http.StatusRequestedRangeNotSatisfiable
}

// isPassing: signs of a connection that broke or timed out, our own limit for one attempt included.
func isPassing(err error) bool {
	for _, sign := range []error{
		io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, context.DeadlineExceeded,
		syscall.ECONNRESET, syscall.ECONNREFUSED, syscall.ECONNABORTED, syscall.EPIPE, syscall.ETIMEDOUT,
	} {
		if errors.Is(err, sign) {
			return true
		}
	}
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}

// isNetwork: the request failed without an answer.
func isNetwork(err error) bool {
	var request *url.Error
	return errors.As(err, &request)
}

// isMisconfigured: signs of a name or a certificate that will be as wrong the next time.
func isMisconfigured(err error) bool {
	var certificate *tls.CertificateVerificationError
	var authority x509.UnknownAuthorityError
	var hostname x509.HostnameError
	var record tls.RecordHeaderError
	var lookup *net.DNSError
	return errors.As(err, &certificate) || errors.As(err, &authority) || errors.As(err, &hostname) || errors.As(err, &record) ||
		errors.As(err, &lookup) && lookup.IsNotFound
}

// detail is an error's text for a person: without URLs, since an upload's may carry a signature, and without what a
// registry or proxy might echo of the credentials.
func (s *session) detail(err error) string {
	var answer *transport.Error
	var request *url.Error
	text := err.Error()
	switch {
	case errors.As(err, &answer):
		parts := []string{fmt.Sprintf("%d %s", answer.StatusCode, http.StatusText(answer.StatusCode))}
		for _, d := range answer.Errors {
			parts = append(parts, strings.TrimSpace(fmt.Sprintf("%s %s", d.Code, d.Message)))
		}
		text = strings.Join(parts, ": ")
	case errors.As(err, &request):
		text = request.Err.Error()
		if u, parseErr := url.Parse(request.URL); parseErr == nil {
			text = fmt.Sprintf("%s to %s: %s", strings.ToUpper(request.Op), u.Host, text)
		}
	}
	const most = 500
	if text = s.redactor.Redact(text); len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + " …"
	}
	return text
}
